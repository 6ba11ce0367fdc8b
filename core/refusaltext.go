package core

import (
	"errors"
	"strconv"
)

// detailOf returns the text for people of the refusal of an error. The key of an idempotent request is
// that by which copies are found, and not the key of a lock.
func detailOf(r *Refusal, err error) string {
	use, isAttempt := "by which it is locked", isOfAttempt(err)
	if isAttempt {
		use = "by which the server recognizes a retry"
	}
	var detail *Error
	switch {
	case r.Code == "wait_timeout" && errors.As(err, &detail) && detail.early:
		return "The request had lost its lock before it asked for this one."
	case r.Code == "body_too_large" && r.MaxBody > 0:
		return "The request body is larger than " + strconv.FormatInt(r.MaxBody, 10) + " bytes."
	case r.Part == "":
	case r.Code == "no_key":
		return "The request lacks " + r.Part + ", " + use + "."
	case r.Code == "invalid_key":
		return "A part of the request, " + use + ", is malformed, too long or given twice: " + r.Part + "."
	}
	if text, differs := attemptDetails[r.Code]; differs && isAttempt {
		return text
	}
	return details[r.Code]
}

// details are texts for people. They contain neither the key, which may be personal data,
// nor the error, which may contain anything.
var details = map[string]string{
	"busy":                   "Another request holds the lock that this one needs.",
	"wait_timeout":           "Another request held the lock for as long as this one could wait.",
	"queue_full":             "Too many requests are waiting for the same lock.",
	"overloaded":             "Too many requests are waiting for locks.",
	"no_key":                 "The request lacks the value by which it is locked.",
	"invalid_key":            "The value by which the request is locked is malformed.",
	"body_too_large":         "The request body is too large.",
	"key_error":              "The lock for the request could not be determined.",
	"mismatch":               "The idempotency key was used before for another request.",
	"outcome_unknown":        "An earlier attempt was interrupted. It is not known whether it took effect.",
	"completed_unreplayable": "The request was completed before. Its answer cannot be repeated.",
	"not_found":              "There is no record of the request.",
	"changed":                "The request has changed since it was seen, or its outcome is known.",
	"upgrade":                "The request could not be locked as the server is set up.",
	"hidden_lease":           "The request could not be locked as the server is set up.",
	"lease_lost":             "The lock was lost while the request ran. The request may have taken effect in part.",
	"closing":                "The server is shutting down.",
	"unavailable":            "The lock service is unavailable.",
	"deadline":               "The request ran out of time before it could run.",
	"canceled":               "The request was canceled before it could run.",
}

// attemptDetails replace details for idempotent requests.
var attemptDetails = map[string]string{
	"busy":         "Another request with the same idempotency key has not ended yet.",
	"wait_timeout": "Another request with the same idempotency key ran for as long as this one could wait.",
	"queue_full":   "Too many requests with the same idempotency key are waiting.",
	"no_key":       "The request lacks the key by which the server recognizes a retry.",
	"invalid_key":  "The key by which the server recognizes a retry is malformed.",
	"key_error":    "It could not be determined whether the request is a retry.",
}

package adapter

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/reqlock/reqlock/core"
)

// ProblemType is the media type of Problem.
const ProblemType = "application/problem+json"

// RefusalOf returns core.RefusalOf, or 500 with the code "internal" for an
// error that core does not know.
func RefusalOf(err error) core.Refusal {
	if refusal, ok := core.RefusalOf(err); ok {
		return refusal
	}
	return core.Refusal{Code: "internal", HTTP: http.StatusInternalServerError}
}

// WriteRefusal answers a request that did not run, or whose handler lost its lock, because of err: with
// its status, its headers and its Problem.
func WriteRefusal(w http.ResponseWriter, err error) {
	noteOurs(w)
	refusal := RefusalOf(err)
	ClearAnswerHeader(w.Header())
	SetRefusalHeader(w.Header(), refusal)
	body := Problem(refusal)
	if body != nil {
		w.Header().Set("Content-Type", ProblemType)
	}
	w.WriteHeader(refusal.HTTP)
	if body != nil {
		// An error means that the client has disconnected.
		_, _ = w.Write(body)
	}
}

// ClearAnswerHeader removes headers that a middleware may have set for another answer.
// Content-Encoding stays: the middleware that set it will encode the body.
func ClearAnswerHeader(h http.Header) {
	for _, name := range [...]string{"Content-Length", "Content-Type", "Etag", "Last-Modified", "Location"} {
		h.Del(name)
	}
}

// SetRefusalHeader sets Cache-Control, and Retry-After in whole seconds if a retry can help.
func SetRefusalHeader(h http.Header, r core.Refusal) {
	h.Set("Cache-Control", "no-store")
	h.Del("Retry-After") // says that the client may try again
	if r.RetryAfter > 0 {
		h.Set("Retry-After", wholeSeconds(r.RetryAfter))
	}
}

// Problem returns the problem document (RFC 9457) of a refusal. It is nil for a client that has
// disconnected. It contains neither the key nor the text of an error.
func Problem(r core.Refusal) []byte {
	if r.Code == "canceled" {
		return nil
	}
	body, _ := json.Marshal(problem{ // strings and an int, which cannot fail
		Type:   "about:blank",
		Title:  http.StatusText(r.HTTP),
		Status: r.HTTP,
		Detail: detailOf(r),
		Code:   r.Code,
	})
	return append(body, '\n')
}

// A problem is a problem document of RFC 9457, with a code for programs.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title,omitempty"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
}

// detailOf returns the text for people. It names the part of the request that the client has
// to mend, if there is one, and the limit of a body.
func detailOf(r core.Refusal) string {
	switch {
	case r.Code == "body_too_large" && r.MaxBody > 0:
		return "The request body is larger than " + strconv.FormatInt(r.MaxBody, 10) + " bytes."
	case r.Part == "":
	case r.Code == "no_key":
		return "The request lacks " + r.Part + ", by which it is locked."
	case r.Code == "invalid_key":
		return "A part of the request, by which it is locked, is malformed, too long or given twice: " + r.Part + "."
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
	"deadline":               "The request ran out of time before it got its lock.",
	"internal":               "The request could not be locked.",
}

// wholeSeconds rounds up, so that a client does not retry too early.
func wholeSeconds(d time.Duration) string {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return strconv.FormatInt(seconds, 10)
}

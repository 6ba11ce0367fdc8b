package main

import (
	"errors"
	"net/http"
)

// The three HTTP services have the same routes, bodies and statuses. This file has
// what they share.

// maxBody is the largest body, in bytes.
const maxBody = 1 << 16

var errBody = errors.New("the body is not the JSON that this route takes")

// A transferBody is the body of a transfer from the account in the path.
type transferBody struct {
	To    string `json:"to"`
	Cents int64  `json:"cents"`
}

// An orderBody is the body of an order.
type orderBody struct {
	Item string `json:"item"`
}

// httpStatusOf returns the status for an error of the bank.
func httpStatusOf(err error) int {
	switch {
	case errors.Is(err, errBody), errors.Is(err, errAmount), errors.Is(err, errSameAccount):
		return http.StatusBadRequest
	case errors.Is(err, errNoAccount):
		return http.StatusNotFound
	case errors.Is(err, errFunds):
		return http.StatusUnprocessableEntity
	case errors.Is(err, errBroken):
		return http.StatusInternalServerError
	}
	return http.StatusServiceUnavailable // the context has ended, and nothing was written
}

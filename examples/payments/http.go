package main

import (
	"errors"
	"net/http"
)

// The three HTTP services have the same routes, take the same bodies and
// answer with the same statuses. This is what they share.

// maxBody bounds a body, in bytes.
const maxBody = 1 << 16

var errBody = errors.New("the body is not the JSON that this route takes")

// A transferBody asks for a transfer from the account in the path.
type transferBody struct {
	To    string `json:"to"`
	Cents int64  `json:"cents"`
}

// An orderBody places an order.
type orderBody struct {
	Item string `json:"item"`
}

// httpStatusOf returns the status of a request that the bank did not carry
// out.
func httpStatusOf(err error) int {
	switch {
	case errors.Is(err, errBody), errors.Is(err, errAmount), errors.Is(err, errSameAccount):
		return http.StatusBadRequest
	case errors.Is(err, errNoAccount):
		return http.StatusNotFound
	case errors.Is(err, errFunds):
		return http.StatusUnprocessableEntity
	}
	return http.StatusServiceUnavailable // the context ended: nothing was written
}

// Package errmux is a router whose handlers return an error. It stands for yours.
package errmux

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

// A Handler answers a request, or answers nothing and returns an error.
type Handler func(w http.ResponseWriter, r *http.Request) error

// A Middleware wraps a Handler.
type Middleware func(next Handler) Handler

// An ErrorHandler answers for a Handler that has returned an error.
type ErrorHandler func(w http.ResponseWriter, r *http.Request, err error)

// An Error is an error with the status and the text of its answer.
type Error struct {
	Status int
	Text   string
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// StatusOf returns the status of the Error in err, or 0 if there is none.
func StatusOf(err error) int {
	own := &Error{}
	errors.As(err, &own)
	return own.Status
}

// A Mux is an http.ServeMux for Handlers.
type Mux struct {
	http.ServeMux
	OnError ErrorHandler // nil: the status and the text of an Error, or 500
}

// muxKey is the key of the Mux in the context of a request.
type muxKey struct{}

// Handle registers a Handler behind middlewares, of which the first one is the outermost.
func (m *Mux) Handle(pattern string, h Handler, around ...Middleware) {
	for _, wrap := range slices.Backward(around) {
		h = wrap(h)
	}
	m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), muxKey{}, m))
		if err := h(w, r); err != nil {
			Fail(w, r, err)
		}
	})
}

// Fail answers for a Handler of a Mux that has returned err.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	if m, _ := r.Context().Value(muxKey{}).(*Mux); m != nil && m.OnError != nil {
		m.OnError(w, r, err)
		return
	}
	own := &Error{Status: http.StatusInternalServerError, Text: "failed"}
	errors.As(err, &own)
	http.Error(w, own.Text, own.Status)
}

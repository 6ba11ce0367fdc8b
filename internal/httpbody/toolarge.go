package httpbody

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/reqlock/reqlock/internal/kind"
)

// A bodyTooLargeError is a kind.ErrBodyTooLarge with its limit.
type bodyTooLargeError struct {
	limit  int64
	option string // what sets the limit; "": the caller's description names it
	cause  error  // the error of the body's reader, if any
}

// Error names the limit.
func (e *bodyTooLargeError) Error() string {
	text := fmt.Sprintf("%v: over %d bytes", kind.ErrBodyTooLarge, e.limit)
	if e.option != "" {
		text += ": see " + e.option
	}
	return text
}

// Unwrap returns kind.ErrBodyTooLarge, and the cause if there is one.
func (e *bodyTooLargeError) Unwrap() []error {
	if e.cause == nil {
		return []error{kind.ErrBodyTooLarge}
	}
	return []error{kind.ErrBodyTooLarge, e.cause}
}

// MaxBody returns the limit in bytes, for core.RefusalOf.
func (e *bodyTooLargeError) MaxBody() int64 { return e.limit }

// ReadFor is Read for a key. reader is the key as the program writes it.
func ReadFor(r *http.Request, limit int64, reader string) ([]byte, error) {
	body, err := Read(r, limit)
	if err == nil && len(body) == 0 && IsConsumed(r) {
		return nil, Consumed(reader)
	}
	var tooLarge *bodyTooLargeError
	if errors.As(err, &tooLarge) && tooLarge.option == "" {
		tooLarge.option = "core.WithMaxBody"
	}
	return body, err
}

// TooLarge returns the kind.ErrBodyTooLarge of a body over a limit in bytes.
func TooLarge(limit int64) error { return &bodyTooLargeError{limit: limit, option: "core.WithMaxBody"} }

// Package kind has the errors of core that packages below it return, too.
package kind

import (
	"context"
	"errors"
)

// The errors are those of package core with the same names, and described there.
var (
	ErrNoKey        = errors.New("reqlock: no key")
	ErrInvalidKey   = errors.New("reqlock: invalid key")
	ErrBodyTooLarge = errors.New("reqlock: body too large")
)

// IsEndOf reports whether a context has ended, and an error says so. The client has disconnected or a
// deadline is over, so the error is no mistake of the program.
func IsEndOf(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// A Mistake is an error of reading a request that the program has caused, so that no client can mend
// it. It is comparable, and has nothing of the request.
type Mistake struct {
	Kind       error  // ErrNoKey or ErrInvalidKey, or nil for another error
	Cause, Fix string // why requests are refused, and what to write instead, or ""
}

// The mistakes of a key that is empty.
var (
	// ErrUnset says that the program has not stored the value that a key reads.
	ErrUnset error = Mistake{
		ErrNoKey, "no middleware has set its value, or the value is empty",
		"let the middleware that sets the value run before this one, and use a name that is equal in both, also in its type",
	}
	// ErrEmpty says that a function of the program has returned an empty key.
	ErrEmpty error = Mistake{
		ErrNoKey, "it returns an empty key",
		"let it read the name that clients send, return core.ErrNoKey if the client has to send the value, or core.ErrSkip if such a request needs no lock",
	}
)

// Error returns the text of the kind, and the cause. That of ErrNoKey is the same for each cause.
func (m Mistake) Error() string {
	switch {
	case m.Kind == ErrNoKey: //nolint:errorlint // the very kind
		return m.Kind.Error()
	case m.Kind != nil:
		return m.Kind.Error() + ": " + m.Cause
	case m.Fix != "":
		return m.Cause + ": " + m.Fix
	}
	return m.Cause
}

// Unwrap returns the kind.
func (m Mistake) Unwrap() error { return m.Kind }

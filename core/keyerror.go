package core

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
)

// Describe names a key function in its errors. call is how the program calls it, such as
// `PathValue("ID")`. part says what a client has to mend, such as `the header "X-Account"`:
// Refusal.Part has it, so neither may contain anything from the request. part is "" where a
// client cannot mend it. The key functions of the adapters are described.
//
// If the key function calls a described one and returns its error, that description counts.
func Describe[R any, K string | RequestKey](call, part string, key func(R) (K, error)) KeyFunc[R] {
	must(key != nil, "Describe needs a key function")
	return func(r R) (RequestKey, error) {
		k, err := callKey(key, r)
		if err != nil {
			return RequestKey{}, described(err, call, part)
		}
		return k, nil
	}
}

// described adds a description to an error that has none, or only the name of a function. It
// returns ErrSkip, and an error of a key function that will be called again, unchanged.
func described(err error, call, part string) error {
	if errors.Is(err, ErrSkip) || isPending(err) {
		return err
	}
	var inner *keyPartError
	if errors.As(err, &inner) {
		if !inner.isName || error(inner) != err { //nolint:errorlint // a wrapped one has a text of the program
			return err
		}
		err = inner.err
	}
	return &keyPartError{call: call, part: part, err: err}
}

// withName adds the name of its function to an error that has no description. A description
// that comes later replaces the name.
func withName(err error, function string) error {
	if errors.Is(err, ErrSkip) || isPending(err) {
		return err
	}
	var inner *keyPartError
	if errors.As(err, &inner) {
		return err
	}
	return &keyPartError{call: function, err: err, isName: true}
}

// A keyPartError is an error of a key function with its description.
type keyPartError struct {
	call, part string
	err        error
	isName     bool // call is only the name of a function
}

// Error returns the text of the error with the call in it.
func (e *keyPartError) Error() string {
	text := e.err.Error()
	for _, kind := range [...]error{ErrNoKey, ErrInvalidKey, ErrBodyTooLarge} {
		if !errors.Is(e.err, kind) {
			continue
		}
		why, hasReason := strings.CutPrefix(text, kind.Error()+": ")
		switch {
		case hasReason:
			return text[:len(text)-len(why)] + e.call + ": " + why
		case text != kind.Error(): // the error wraps it in a text of its own
		case kind == ErrNoKey: //nolint:errorlint // this very kind
			return text + ": " + e.call + " is empty"
		default:
			return text + ": " + e.call
		}
	}
	return e.call + ": " + text
}

// Unwrap returns the error of the key function.
func (e *keyPartError) Unwrap() error { return e.err }

// isPending reports whether the key function will be called again for the same request, so
// that its error refuses nothing. An adapter's error says so by this method.
func isPending(err error) bool {
	var pending interface{ ReqlockPending() }
	return errors.As(err, &pending)
}

// functionOf returns the name of a function without the path of its package: "main.keyOf".
func functionOf(f any) string {
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	return name[strings.LastIndexByte(name, '/')+1:]
}

package core

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strings"

	"github.com/reqlock/reqlock/internal/bridge"
)

// described adds the description of a key to an error that has none. It returns ErrSkip unchanged.
func described(err error, about *bridge.About) error {
	if about.Call == "" || errors.Is(err, ErrSkip) {
		return err
	}
	if _, is := errors.AsType[*keyPartError](err); is { // errors.As allocates
		return err
	}
	return &keyPartError{call: about.Call, part: about.Part, err: err}
}

// A keyPartError is an error of a key with its description.
type keyPartError struct {
	call, part string
	err        error
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

// Unwrap returns the error of reading the key.
func (e *keyPartError) Unwrap() error { return e.err }

// functionOf returns the name of a function without the path of its package: "main.keyOf". That of a
// function without a name has the place of the function: "main.routes.func3 (main.go:47)".
func functionOf(f any) string {
	at := runtime.FuncForPC(reflect.ValueOf(f).Pointer())
	name := at.Name()[strings.LastIndexByte(at.Name(), '/')+1:]
	if !strings.Contains(name, ".func") {
		return name
	}
	file, line := at.FileLine(at.Entry())
	return fmt.Sprintf("%s (%s:%d)", name, path.Base(file), line)
}

// asKeyError converts an error of a key, or another error of reading a request, to an error for which
// RefusalOf returns a refusal. It returns nil and ErrSkip unchanged.
func asKeyError(err error) error {
	if err == nil {
		return nil
	}
	for _, kind := range [...]error{ErrSkip, ErrNoKey, ErrInvalidKey, ErrBodyTooLarge} {
		if errors.Is(err, kind) {
			return err
		}
	}
	return &keyError{err}
}

// must panics with the message unless ok is true. It is for mistakes of the programmer.
func must(ok bool, message string) {
	if !ok {
		panic("reqlock: " + message)
	}
}

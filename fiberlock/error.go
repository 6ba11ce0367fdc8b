package fiberlock

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// self is the name of this package in errors.
const self = adapter.Name("fiberlock")

// WithErrorHandler sets the function that answers requests that do not run: WriteError if
// not set. handle gets the error of core.Enter or Locker.Begin: use core.RefusalOf or
// errors.Is to find its meaning; its text is not for clients. The middleware returns the error that
// handle returns, so the application's ErrorHandler renders it. Idempotent also calls handle for
// handlers that gave no answer after their context had ended: the error is
// core.ErrOutcomeUnknown, or core.ErrUnavailable if the key is free.
//
// If handle returns err, or another error of core, the ErrorHandler gets an *fiber.Error with the
// status and the code of the refusal, such as "busy", that unwraps to it: Fiber's default
// ErrorHandler sends the text of an error. So a handle that returns err leaves all refusals to the
// ErrorHandler.
//
// A request that did not run does not get a success by mistake. If handle does nothing, or sets no
// more than the status of the refusal, WriteError answers. If handle writes a body without a status,
// the answer has the status of the refusal instead of 200.
//
// Behind an Idempotent, an answer of handle with a status of 4xx, with a 503 that is the
// status of the refusal, or by WriteError, frees the key. Any other answer counts as if the
// handler had given it.
func WithErrorHandler(handle func(c fiber.Ctx, err error) error) core.Option {
	return errorHandler.Option(handle)
}

// errorHandler is the setting of WithErrorHandler.
var errorHandler = adapter.NewSetting[handler](self, "WithErrorHandler", adapter.ForAll)

// A handler answers a request that does not run. nil means WriteError.
type handler func(fiber.Ctx, error) error

// WriteError answers a request that did not run. A middleware uses it without WithErrorHandler, and an
// error handler can call it. It returns nil. Exception: an *fiber.Error of a function of core.KeyOf
// with a status of 4xx or 5xx is returned, for the application's ErrorHandler, unless it wraps an
// error of core.
//
// The answer is the core.Refusal of err: its status, Retry-After in whole seconds if a
// retry can help, and a problem document (RFC 9457) with its code:
//
//	{"type":"about:blank","title":"Conflict","status":409,"detail":"...","code":"busy"}
//
// It replaces what c has as the body of its answer. If the context of the request was cancelled, the
// answer is 499 without a body. An error that core.RefusalOf does not know is 500 with the code
// "internal". No answer contains a key, a token or the text of an error. core.WithProblemType sets
// another type.
func WriteError(c fiber.Ctx, err error) error {
	err = adapter.InContext(c.Context(), err)
	if own := keyError(err); own != nil {
		return own
	}
	adapter.WriteRefusal(newWriter(c), err)
	return nil
}

// refuse returns the error of a request that does not run, or answers it and returns nil.
func (h handler) refuse(c fiber.Ctx, err error, entry adapter.Entry) error {
	refusal, answer := adapter.RefusalOf(err), keyError(err)
	switch {
	case c.IsAbandoned():
		answer = err
	case h != nil:
		c.Status(refusal.HTTP) // of a body without a status
		answer = h(c, err)
	}
	switch {
	case answer != nil:
		return returned(c, answer, err, entry)
	case h != nil && isAnswered(c, refusal):
		guard := entry.Guard(unsent{}, err)
		guard.WriteHeader(c.Response().StatusCode())
		_, _ = guard.Write(bodyOf(c))
	default:
		entry.Refuse(newWriter(c), err)
	}
	return nil
}

// isAnswered reports whether an error handler has given an answer of its own.
func isAnswered(c fiber.Ctx, refusal core.Refusal) bool {
	body := bodyOf(c)
	isDefault := len(body) == 0 || bytes.Equal(body, adapter.Problem(refusal))
	return !isDefault || c.Response().StatusCode() != refusal.HTTP || isSentLater(c)
}

// returned returns the error by which the application's ErrorHandler answers a request that does not
// run because of err.
func returned(c fiber.Ctx, answer, err error, entry adapter.Entry) error {
	refusal, isOurs := core.RefusalOf(answer)
	shown := ownError(answer)
	if isOurs {
		if shown == nil {
			shown = fiber.NewError(refusal.HTTP, refusal.Code)
		}
		answer = &refused{shown, answer}
	}
	isOurs = isOurs || shown != nil && errors.Is(err, answer) // of the key
	if isOurs && !c.IsAbandoned() {
		w := newWriter(c)
		adapter.SetRefusalHeader(w.header, adapter.RefusalOf(err))
		w.WriteHeader(shown.Code)
	}
	entry.SetReturned(answer, statusIn(answer), isOurs)
	return answer
}

// withoutText returns the error of handlers as the application's ErrorHandler gets it. Fiber's default one
// sends the text of an error, and that of an error of core may have the address of Redis: such an error,
// as that of a Locker.Do in the handler, is the 500 of any other error, with a text of Fiber's.
func withoutText(err error) error {
	if _, isOurs := core.RefusalOf(err); isOurs && statusIn(err) == 0 {
		return &refused{fiber.ErrInternalServerError, err}
	}
	return err
}

// A refused is an error of core as the application's ErrorHandler gets it, most often that of a request
// that does not run. It has neither a key nor the text of the error below.
type refused struct {
	shown *fiber.Error
	cause error
}

// Error returns the message, which is the code of the refusal unless the application has chosen it.
func (r *refused) Error() string { return r.shown.Message }

// Unwrap returns the error of the error handler.
func (r *refused) Unwrap() error { return r.cause }

// As makes the error an *fiber.Error.
func (r *refused) As(target any) bool {
	own, is := target.(**fiber.Error)
	if is {
		*own = r.shown
	}
	return is
}

// keyError returns the *fiber.Error of the application's key, or nil.
func keyError(err error) error {
	if refusal, _ := core.RefusalOf(err); refusal.Code == "key_error" {
		if own := ownError(err); own != nil {
			return own
		}
	}
	return nil
}

// ownError returns the *fiber.Error in err that has the status of an error, or nil.
func ownError(err error) *fiber.Error {
	var own *fiber.Error
	if !errors.As(err, &own) || own.Code < http.StatusBadRequest || own.Code > 599 {
		return nil
	}
	return own
}

// statusIn returns the status of Fiber's own error in err, or 0 if there is none.
func statusIn(err error) int {
	var own *fiber.Error
	if errors.As(err, &own) {
		return own.Code
	}
	return 0
}

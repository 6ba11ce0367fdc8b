package echolock

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// self is the name of this package in errors.
const self = adapter.Name("echolock")

// WithErrorHandler sets the function that answers requests that do not run: WriteError if
// not set. handle gets the error of core.Enter or Locker.Begin: use core.RefusalOf or
// errors.Is to find its meaning. The middleware returns the error that handle returns, so
// the application's HTTPErrorHandler renders it. Idempotent also calls handle for a handler
// that gave no answer after its context had ended: the error is core.ErrOutcomeUnknown, or
// core.ErrUnavailable if the key is free.
//
// A request that did not run does not get a success by mistake. If handle returns err
// itself, or returns nil without an answer, WriteError answers. If handle writes a body
// without a status, the answer has the status of the refusal instead of 200. Writing to
// c.Response().Writer and hijacking are answers as well. If the function of a
// core.KeyOf has answered by itself, its answer is kept, and handle is not called.
//
// Behind an Idempotent, an answer of handle with a status of 4xx, with a 503 that is the
// status of the refusal, or by WriteError, frees the key. Any other answer counts as if the
// handler had given it.
func WithErrorHandler(handle func(c echo.Context, err error) error) core.Option {
	return errorHandler.Option(handle)
}

// errorHandler is the setting of WithErrorHandler.
var errorHandler = adapter.NewSetting[func(c echo.Context, err error) error](self, "WithErrorHandler", adapter.ForAll)

// A refusal is kept in the context of a refused request, for a middleware outside
// that retries the request: if the retry runs, its answer must not contain parts of
// the refusal.
type refusal struct {
	status int   // of the response, before the refusal
	over   bool  // a retry of the request runs
	made   error // the last error of WriteError
}

// refusalName is the name of the refusal in the context.
const refusalName = "github.com/reqlock/reqlock/echolock.refusal"

// refusalOf returns the refusal of a request, and adds one if there is none.
func refusalOf(c echo.Context) *refusal {
	r, refused := c.Get(refusalName).(*refusal)
	if !refused {
		r = &refusal{status: c.Response().Status}
		c.Set(refusalName, r)
	}
	return r
}

// endRefusal removes the effects of a refusal before a request runs.
func endRefusal(c echo.Context) {
	if r, refused := c.Get(refusalName).(*refusal); refused {
		r.over = true
		c.Response().Status = r.status
		c.Set(refusalName, nil)
	}
}

// refuse returns the error of a request that does not run. It calls the error
// handler, unless the key has answered by itself.
func refuse(c echo.Context, err error, handler func(echo.Context, error) error, entry adapter.Entry) (answer error) {
	response := c.Response()
	if response.Committed {
		entry.SetAnswered(response.Status, int(response.Size))
		return err
	}
	if handler == nil {
		handler = WriteError
	}
	refusal := refusalOf(c) // keeps the status
	guard := entry.Guard(response.Writer, err)
	response.Status = guard.Status() // for a body without a status
	answer = handle(c, err, handler, guard)
	isItself := answer == err //nolint:errorlint // not wrapped
	if isItself || answer == nil && !response.Committed {
		answer = WriteError(c, err)
	}
	entry.SetReturned(answer, statusIn(answer), errors.Is(answer, refusal.made))
	return answer
}

// handle calls the error handler. An answer that the error handler writes to the
// server's own writer or to the connection counts as well.
func handle(c echo.Context, err error, handler func(echo.Context, error) error, guard *adapter.Guard) error {
	response := c.Response()
	w := response.Writer
	response.Writer = guard
	defer func() { response.Writer = w }()
	answer := handler(c, err)
	response.Committed = response.Committed || guard.Answered()
	return answer
}

// WriteError prepares the answer of a request that did not run, and returns an
// *echo.HTTPError for the application's HTTPErrorHandler. A middleware uses it
// without an error handler, and an error handler can call it.
//
// Code is the status of core.RefusalOf, and Message is its code, a string such as
// "busy". Internal is another *echo.HTTPError, which Echo's DefaultHTTPErrorHandler
// prefers. Its Message is a problem document (RFC 9457) that is sent as
// application/problem+json:
//
//	{"type":"about:blank","title":"Conflict","status":409,"detail":"...","code":"busy"}
//
// Both errors unwrap to err, for errors.Is, errors.As and core.RefusalOf. Exception:
// if the request's deadline ended the wait, WriteError returns the inner error with
// the document, since middleware.ContextTimeout wraps it in an HTTPError of its own.
// The Message of the inner error is not a string.
//
// An answer with an error status gets Cache-Control, and Retry-After in whole seconds
// if a retry can help, whether the HTTPErrorHandler or a middleware renders it. The
// answer does not get these headers if it is a success of a middleware outside, or if
// a retry in a middleware outside runs the handler.
//
// If the client has disconnected, the answer is 499 without a body, and WriteError
// has sent it already. An error that core.RefusalOf does not know is 500 with the
// code "internal". An *echo.HTTPError of a function of core.KeyOf is answered
// with its Code and Message, unless it wraps an error of core. No other answer
// contains a key, a token or the text of an error. core.WithProblemType sets another type.
func WriteError(c echo.Context, err error) error {
	refusal := adapter.RefusalOf(adapter.InContext(c.Request().Context(), err))
	document := &problem{refusal: refusal}
	announce(c, refusal, document)
	inner := &echo.HTTPError{Code: refusal.HTTP, Message: document, Internal: behind(err)}
	answer := &echo.HTTPError{Code: refusal.HTTP, Message: refusal.Code, Internal: inner}
	if own := applicationError(refusal.Code, err); own != nil {
		answer = &echo.HTTPError{Code: own.Code, Message: own.Message, Internal: err}
	}
	switch {
	case refusal.Code == "deadline":
		answer = inner
	case adapter.Problem(refusal) == nil:
		_ = c.NoContent(refusal.HTTP) // the default handler would write a document
	}
	refusalOf(c).made = answer
	return answer
}

// announce clears the headers that the answer sets, and sets them when its status is
// sent.
func announce(c echo.Context, refusal core.Refusal, document *problem) {
	state, response := refusalOf(c), c.Response()
	adapter.ClearAnswerHeader(response.Header())
	response.Before(func() {
		if state.over || response.Status < http.StatusBadRequest {
			return
		}
		header := response.Header()
		adapter.SetRefusalHeader(header, refusal)
		isJSON := strings.HasPrefix(header.Get(echo.HeaderContentType), echo.MIMEApplicationJSON)
		if isJSON && document.rendered.Load() {
			header.Set(echo.HeaderContentType, adapter.ProblemType)
		}
	})
}

// behind wraps err if it is an *echo.HTTPError: Echo's default handler would send it
// as the answer.
func behind(err error) error {
	if _, is := err.(*echo.HTTPError); is { //nolint:errorlint // as Echo's own handler does
		return fmt.Errorf("%w", err)
	}
	return err
}

// applicationError returns the *echo.HTTPError of the application's key, or nil. It must have
// the status of an error.
func applicationError(code string, err error) *echo.HTTPError {
	var own *echo.HTTPError
	if code != "key_error" || !errors.As(err, &own) || own.Code < http.StatusBadRequest || own.Code > 599 {
		return nil
	}
	return own
}

// A problem is the problem document of a refusal as a value, which Echo renders. It is safe for
// concurrent use.
type problem struct {
	refusal  core.Refusal
	rendered atomic.Bool // so the media type of the answer is adapter.ProblemType
}

// MarshalJSON returns the text of the document, or null for a client that has disconnected.
func (p *problem) MarshalJSON() ([]byte, error) {
	p.rendered.Store(true)
	if text := adapter.Problem(p.refusal); text != nil {
		return text, nil
	}
	return []byte("null"), nil
}

// String returns the code of the refusal, for answers in plain text and for logs.
func (p *problem) String() string { return p.refusal.Code }

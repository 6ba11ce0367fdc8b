package echov5lock

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v5"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// self is the name of this package in errors.
const self = adapter.Name("echov5lock")

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
// the server's own writer and hijacking are answers as well. If the function of a
// core.KeyOf has answered by itself, its answer is kept, and handle is not called.
//
// Behind an Idempotent, an answer of handle with a status of 4xx, with a 503 that is the
// status of the refusal, or by WriteError, frees the key. Any other answer counts as if the
// handler had given it.
func WithErrorHandler(handle func(c *echo.Context, err error) error) core.Option {
	return errorHandler.Option(handle)
}

// errorHandler is the setting of WithErrorHandler.
var errorHandler = adapter.NewSetting[func(c *echo.Context, err error) error](self, "WithErrorHandler", adapter.ForAll)

// A refused is kept in the context of a refused request, for a middleware outside that
// retries the request: if the retry runs, its answer must not contain parts of the refusal.
type refused struct {
	response *echo.Response
	status   int   // of the response, before the refusal
	over     bool  // a retry of the request runs
	made     error // the last error of WriteError
}

// refusedName is the name of the refused in the context.
const refusedName = "github.com/reqlock/reqlock/echov5lock.refused"

// refusedOf returns the refused of a request, and adds one if there is none.
func refusedOf(c *echo.Context) *refused {
	r, is := c.Get(refusedName).(*refused)
	if !is {
		response := responseOf(c)
		r = &refused{response: response, status: response.Status}
		c.Set(refusedName, r)
	}
	return r
}

// endRefusal removes the effects of a refusal before a request runs.
func endRefusal(c *echo.Context) {
	if r, is := c.Get(refusedName).(*refused); is {
		r.over = true
		r.response.Status = r.status
		c.Set(refusedName, nil)
	}
}

// refuse returns the error of a request that does not run. It calls the error handler,
// unless the key has answered by itself.
func refuse(c *echo.Context, err error, handler func(*echo.Context, error) error, entry adapter.Entry, watched *watch) error {
	response := responseOf(c)
	switch {
	case watched.isAnswered():
		entry.SetAnswered(watched.status, watched.size)
		return err
	case response.Committed:
		entry.SetAnswered(response.Status, int(response.Size))
		return err
	}
	if handler == nil {
		handler = WriteError
	}
	refused := refusedOf(c) // keeps the status
	w := response.ResponseWriter
	guard := entry.Guard(w, err)
	response.Status = guard.Status() // for a body without a status
	response.ResponseWriter = guard
	defer func() { response.ResponseWriter = w }()

	answer := handler(c, err)
	// The server's own writer and the connection are below the Response.
	response.Committed = response.Committed || guard.Answered()
	isItself := answer == err //nolint:errorlint // not wrapped
	if isItself || answer == nil && !response.Committed && !watched.isAnswered() {
		answer = WriteError(c, err)
	}
	if own, is := answer.(*refusal); is && own.Code == "deadline" { //nolint:errorlint // not in another error
		c.Echo().HTTPErrorHandler(c, own) // middleware.ContextTimeout outside would answer with an error of its own
	}
	entry.SetReturned(answer, echo.StatusCode(answer), errors.Is(answer, refused.made))
	return answer
}

// WriteError prepares the answer of a request that did not run, and returns an error for
// the application's HTTPErrorHandler. A middleware uses it without an error handler, and an
// error handler can call it.
//
// echo.StatusCode returns the status of core.RefusalOf, and the text of the error is its code,
// such as "busy". errors.As also finds an *echo.HTTPError with both. Echo's
// DefaultHTTPErrorHandler sends a problem document (RFC 9457) as application/problem+json:
//
//	{"type":"about:blank","title":"Conflict","status":409,"detail":"...","code":"busy"}
//
// ProblemDetailsHTTPErrorHandler has no member for the code, so the type is "urn:reqlock:busy"
// there. With core.WithProblemType it is the same type in both.
//
// The error unwraps to err, for errors.Is, errors.As and core.RefusalOf. If the request's
// deadline ended the wait, the middleware has the error rendered at once, since
// middleware.ContextTimeout would replace it; it returns the error all the same.
//
// An answer with an error status gets Cache-Control, and Retry-After in whole seconds
// if a retry can help, whether the HTTPErrorHandler or a middleware renders it. The
// answer does not get these headers if it is a success of a middleware outside, or if
// a retry in a middleware outside runs the handler.
//
// If the client has disconnected, the answer is 499 without a body, and WriteError
// has sent it already. An error that core.RefusalOf does not know is 500 with the
// code "internal". If a function of core.KeyOf returns an error that Echo renders by itself,
// and it does not wrap an error of core, WriteError returns err: an *echo.HTTPError, a predefined
// one such as echo.ErrUnauthorized, an *echo.ProblemError, or one with the methods StatusCode
// and MarshalJSON or ProblemError. No other answer contains a key, a token or the text of
// an error.
func WriteError(c *echo.Context, err error) error {
	answer := &refusal{Refusal: adapter.RefusalOf(adapter.InContext(c.Request().Context(), err)), cause: err}
	answer.announce(c)
	refused := refusedOf(c)
	if answer.Code == "key_error" && isRendered(err) {
		refused.made = err
		return err
	}
	if answer.Code == "canceled" {
		_ = c.NoContent(answer.HTTP) // the default handler would write a document
	}
	refused.made = answer
	return answer
}

// isRendered reports whether an error of the application's key says how Echo renders it. It must
// have the status of an error.
func isRendered(err error) bool {
	var coded echo.HTTPStatusCoder
	if !errors.As(err, &coded) || coded.StatusCode() < http.StatusBadRequest || coded.StatusCode() > 599 {
		return false
	}
	switch coded.(type) {
	case interface{ Wrap(err error) error }: // *echo.HTTPError, and the type of Echo's predefined errors
		return true
	case *echo.ProblemError, echo.ProblemErrorer, json.Marshaler:
		return true
	}
	return false
}

// A refusal is the error of a request that did not run, in all forms that Echo's error handlers
// render. It is safe for concurrent use.
type refusal struct {
	core.Refusal
	cause    error
	rendered atomic.Bool // as a problem document
}

// Error returns the code: an error handler may send it.
func (r *refusal) Error() string { return r.Code }

// Unwrap returns the error because of which the request did not run.
func (r *refusal) Unwrap() error { return r.cause }

// StatusCode returns the status for echo.StatusCode.
func (r *refusal) StatusCode() int { return r.HTTP }

// As makes an *echo.HTTPError of the refusal, for error handlers that look for one.
func (r *refusal) As(target any) bool {
	found, is := target.(**echo.HTTPError)
	if is {
		*found = echo.NewHTTPError(r.HTTP, r.Code)
	}
	return is
}

// MarshalJSON returns the problem document, or null for a client that has disconnected.
func (r *refusal) MarshalJSON() ([]byte, error) {
	r.rendered.Store(true)
	if text := adapter.Problem(r.Refusal); text != nil {
		return text, nil
	}
	return []byte("null"), nil
}

// ProblemError returns the problem document for ProblemDetailsHTTPErrorHandler.
func (r *refusal) ProblemError() *echo.ProblemError {
	typed := r.Refusal
	if typed.Type == "" {
		typed.Type = "urn:reqlock:" + typed.Code
	}
	document := &echo.ProblemError{Status: typed.HTTP}
	_ = json.Unmarshal(adapter.Problem(typed), document) // fails for a client that has disconnected
	return document
}

// announce clears the headers that the answer sets, and sets them when its status is sent.
func (r *refusal) announce(c *echo.Context) {
	refused, response := refusedOf(c), responseOf(c)
	adapter.ClearAnswerHeader(response.Header())
	response.Before(func() {
		if refused.over || response.Status < http.StatusBadRequest {
			return
		}
		header := response.Header()
		adapter.SetRefusalHeader(header, r.Refusal)
		isJSON := strings.HasPrefix(header.Get(echo.HeaderContentType), echo.MIMEApplicationJSON)
		if isJSON && r.rendered.Load() {
			header.Set(echo.HeaderContentType, adapter.ProblemType)
		}
	})
}

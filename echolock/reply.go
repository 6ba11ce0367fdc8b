package echolock

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

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
// contains a key, a token or the text of an error.
func WriteError(c echo.Context, err error) error {
	outcome := adapter.RefusalOf(err)
	document := &problem{refusal: outcome}
	announce(c, outcome, document)
	inner := &echo.HTTPError{Code: outcome.HTTP, Message: document, Internal: behind(err)}
	answer := &echo.HTTPError{Code: outcome.HTTP, Message: outcome.Code, Internal: inner}
	if own := applicationError(outcome.Code, err); own != nil {
		answer = &echo.HTTPError{Code: own.Code, Message: own.Message, Internal: err}
	}
	switch {
	case outcome.Code == "deadline":
		answer = inner
	case adapter.Problem(outcome) == nil:
		_ = c.NoContent(outcome.HTTP) // the default handler would write a document
	}
	refusalOf(c).made = answer
	return answer
}

// announce clears the headers that the answer sets, and sets them when its status is
// sent.
func announce(c echo.Context, outcome core.Refusal, document *problem) {
	refusal, response := refusalOf(c), c.Response()
	adapter.ClearAnswerHeader(response.Header())
	response.Before(func() {
		if refusal.over || response.Status < http.StatusBadRequest {
			return
		}
		header := response.Header()
		adapter.SetRefusalHeader(header, outcome)
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

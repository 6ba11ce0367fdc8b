package echolock

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpreply"
)

// WriteError prepares the answer of a request that did not run, and returns
// the *echo.HTTPError that the application's HTTPErrorHandler is to render. It
// is what a middleware does without an error handler, and what an error handler
// can fall back to.
//
// The Code is the status of core.OutcomeOf, and the Message its code, a string
// such as "busy". Internal is another *echo.HTTPError, which Echo's
// DefaultHTTPErrorHandler prefers: a problem document (RFC 9457), that is sent
// as application/problem+json:
//
//	{"type":"about:blank","title":"Conflict","status":409,"detail":"...","code":"busy"}
//
// errors.Is, errors.As and core.OutcomeOf see err through both. Where the
// request's deadline ended the wait, the one with the document, whose Message is
// no string, is returned itself: middleware.ContextTimeout puts an HTTPError of
// its own around it.
//
// When an answer with an error's status is sent, whoever renders it, it gets
// Retry-After, in whole seconds where trying again can help, and Cache-Control.
// An answer of another kind, that a middleware outside falls back to, does not,
// nor does that of a handler which runs when it tries again.
//
// For a client that is gone the answer is 499 without a body, and is sent
// already. For an error that core.OutcomeOf does not know it is 500 with the
// code "internal". An *echo.HTTPError of the user's own key function is
// answered with its Code and Message, unless it wraps an error of core. Else no
// answer carries a key, a token or the text of an error.
func WriteError(c echo.Context, err error) error {
	outcome := httpreply.OutcomeOf(err)
	document := httpreply.NewDocument(outcome)
	announce(c, outcome, document)
	inner := &echo.HTTPError{Code: outcome.HTTP, Message: document, Internal: behind(err)}
	answer := &echo.HTTPError{Code: outcome.HTTP, Message: outcome.Code, Internal: inner}
	if own := applicationError(outcome.Code, err); own != nil {
		answer = &echo.HTTPError{Code: own.Code, Message: own.Message, Internal: err}
	}
	switch {
	case outcome.Code == "deadline":
		return inner
	case !httpreply.HasBody(outcome):
		_ = c.NoContent(outcome.HTTP) // the default handler would write a document
	}
	return answer
}

// announce makes room for the headers of the answer, and sees that it gets them
// when its status is sent.
func announce(c echo.Context, outcome core.Outcome, document *httpreply.Document) {
	refusal, response := refusalOf(c), c.Response()
	httpreply.ClearHeader(response.Header())
	response.Before(func() {
		if refusal.over || response.Status < http.StatusBadRequest {
			return
		}
		header := response.Header()
		httpreply.SetHeader(header, outcome)
		isJSON := strings.HasPrefix(header.Get(echo.HeaderContentType), echo.MIMEApplicationJSON)
		if isJSON && document.Rendered() {
			header.Set(echo.HeaderContentType, httpreply.ContentType)
		}
	})
}

// behind hides that err itself is an *echo.HTTPError, which Echo's default
// handler would take for the answer.
func behind(err error) error {
	if _, is := err.(*echo.HTTPError); is { //nolint:errorlint // as Echo's own handler does
		return fmt.Errorf("%w", err)
	}
	return err
}

// applicationError returns the answer that the user's own key function asks
// for, or nil. A success is not asked for.
func applicationError(code string, err error) *echo.HTTPError {
	var own *echo.HTTPError
	if code != "key_error" || !errors.As(err, &own) || own.Code < http.StatusBadRequest || own.Code > 599 {
		return nil
	}
	return own
}

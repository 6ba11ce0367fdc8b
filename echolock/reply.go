package echolock

import (
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/internal/httpreply"
)

// WriteError prepares the answer of a request that did not run, and returns
// the *echo.HTTPError that the application's HTTPErrorHandler is to render. It
// is what a middleware does without an error handler, and what an error handler
// can fall back to.
//
// The Code is the status of core.OutcomeOf. The Message is rendered by Echo's
// DefaultHTTPErrorHandler, and by any other that gives it to c.JSON, as a
// problem document (RFC 9457) with the outcome's code; as a text it is the code
// alone:
//
//	{"type":"about:blank","title":"Conflict","status":409,"detail":"...","code":"busy"}
//
// Internal is err, so that errors.Is, errors.As and core.OutcomeOf see through
// the HTTPError.
//
// The headers are set on the response already: Retry-After, in whole seconds
// where trying again can help, and Cache-Control. Its Content-Type becomes
// application/problem+json if the Message is rendered, and is left to those who
// render something else.
//
// For a client that is gone the answer is 499 without a body, and is sent
// already. For an error that core.OutcomeOf does not know it is 500 with the
// code "internal". An *echo.HTTPError of the user's own key function is
// answered with its Code and Message. Else no answer carries a key, a token or
// the text of an error.
func WriteError(c echo.Context, err error) error {
	outcome := httpreply.OutcomeOf(err)
	response := c.Response()
	httpreply.SetHeader(response.Header(), outcome)
	response.Header().Del(echo.HeaderContentType)

	document := httpreply.NewDocument(outcome)
	answer := &echo.HTTPError{Code: outcome.HTTP, Message: document, Internal: err}
	if own := applicationError(outcome.Code, err); own != nil {
		answer.Code, answer.Message = own.Code, own.Message
	}
	if !httpreply.HasBody(outcome) {
		_ = c.NoContent(outcome.HTTP) // the default handler would write "null"
		return answer
	}
	response.Before(func() {
		isJSON := strings.HasPrefix(response.Header().Get(echo.HeaderContentType), echo.MIMEApplicationJSON)
		if isJSON && document.Rendered() {
			response.Header().Set(echo.HeaderContentType, httpreply.ContentType)
		}
	})
	return answer
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

// refuse returns the error of a request that does not run.
func (config *Config) refuse(c echo.Context, err error) error {
	c.Response().Status = httpreply.OutcomeOf(err).HTTP // of a body that is written without one
	answer := config.ErrorHandler(c, err)
	asItIs := answer == err //nolint:errorlint // the very error, not one that the handler made of it
	if asItIs || answer == nil && !c.Response().Committed {
		return WriteError(c, err)
	}
	return answer
}

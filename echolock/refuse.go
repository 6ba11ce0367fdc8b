package echolock

import (
	"errors"
	"reflect"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/adapter"
)

// refuse returns the error of a request that does not run. It calls the error
// handler, unless the key has answered by itself.
func refuse(c echo.Context, err error, handler func(echo.Context, error) error, entry adapter.Entry) (answer error) {
	response := c.Response()
	if response.Committed {
		entry.SetAnswered(response.Status, int(response.Size))
		return err
	}
	refusal := refusalOf(c) // keeps the status
	guard := entry.Guard(response.Writer, err)
	response.Status = guard.Status() // for a body without a status
	answer = handle(c, err, handler, guard)
	if isItself(answer, err) || answer == nil && !response.Committed {
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

// isItself reports whether an error handler has returned err itself.
func isItself(answer, err error) bool {
	if !reflect.ValueOf(err).Comparable() { // == would panic
		return reflect.TypeOf(answer) == reflect.TypeOf(err)
	}
	return answer == err //nolint:errorlint // the same error, not a wrapped one
}

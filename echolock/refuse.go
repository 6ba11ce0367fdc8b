package echolock

import (
	"reflect"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/httpreply"
)

// refuse returns the error of a request that does not run. It calls the error
// handler, unless the key has answered by itself.
func refuse(c echo.Context, err error, handler func(echo.Context, error) error, pass *httpattempt.Pass) (answer error) {
	response := c.Response()
	if response.Committed {
		pass.RefusedByKey(response.Status, int(response.Size), err)
		return err
	}
	refusal := refusalOf(c)                         // keeps the status
	response.Status = httpreply.RefusalOf(err).HTTP // for a body without a status
	guard := pass.Guard(response.Writer, err)
	defer func() { // also when the error handler panics
		if pass != nil {
			pass.Refused(refusal.of(answer, err, guard))
		}
	}()
	answer = handle(c, err, handler, guard)
	if isItself(answer, err) || answer == nil && !response.Committed {
		return WriteError(c, err)
	}
	return answer
}

// handle calls the error handler. An answer that the error handler writes to the
// server's own writer or to the connection counts as well.
func handle(c echo.Context, err error, handler func(echo.Context, error) error, guard *httpreply.Guard) error {
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

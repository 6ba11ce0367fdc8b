package echolock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A handler that was cut off and gives no answer must not look like a success, nor, unless
// nothing has happened, like a refusal after which the client may try again.
func TestHandlerThatLosesItsLease(t *testing.T) {
	t.Parallel()
	noEffect := func(c echo.Context) error {
		if attempt, ok := core.AttemptFromContext(c.Request().Context()); ok {
			attempt.Decide(core.EndNoEffect)
		}
		return c.Request().Context().Err()
	}
	for name, test := range map[string]struct {
		handler       echo.HandlerFunc
		inTime        bool   // it does not wait for the end of its lease
		lock, attempt string // the code of the answer; "" is the handler's own
	}{
		"no answer":                {func(echo.Context) error { return nil }, false, "lease_lost", "outcome_unknown"},
		"no effect":                {noEffect, false, "lease_lost", "unavailable"},
		"the context's end":        {func(c echo.Context) error { return c.Request().Context().Err() }, false, "lease_lost", "outcome_unknown"},
		"the cause":                {func(c echo.Context) error { return context.Cause(c.Request().Context()) }, false, "lease_lost", "outcome_unknown"},
		"the end of another lease": {func(echo.Context) error { return core.ErrClosed }, true, "lease_lost", "outcome_unknown"},
		"headers": {func(c echo.Context) error {
			c.Response().Header().Set("Retry-After", "7")
			c.Response().Header().Set("Location", "/payments/1")
			return nil
		}, false, "lease_lost", "outcome_unknown"},
		"an answer":               {func(c echo.Context) error { return c.NoContent(http.StatusNoContent) }, false, "", ""},
		"an answer and the cause": {func(c echo.Context) error { return errors.Join(c.NoContent(http.StatusNoContent), core.ErrLost) }, false, "", ""},
		"an empty 200":            {func(c echo.Context) error { return c.NoContent(http.StatusOK) }, false, "", "outcome_unknown"},
		"an error of its own":     {func(echo.Context) error { return errors.New("own") }, false, "", ""},
		"an HTTPError":            {func(echo.Context) error { return echo.ErrTeapot.WithInternal(core.ErrLost) }, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, limit := locktest.New(t), core.WithMaxHold(time.Millisecond)
			if test.inTime {
				limit = core.WithMaxHold(0)
			}
			e := newEcho()
			handler := func(c echo.Context) error {
				if !test.inTime {
					<-c.Request().Context().Done()
				}
				return test.handler(c)
			}
			e.POST("/lock", handler, echolock.Middleware(locks.Locker, byKey, limit))
			e.POST("/attempt", handler, echolock.Idempotent(locks.Locker, byKey, limit))
			e.POST("/inside", handler, echolock.Idempotent(locks.Locker, byKey), echolock.Middleware(locks.Locker, literal, limit))
			for path, code := range map[string]string{"/lock": test.lock, "/attempt": test.attempt, "/inside": test.attempt} {
				adaptertest.WantLoss(t, pay(t, e, path, "k", ""), code)
			}
		})
	}
}

// WriteError finds the type of the problem in the context of the request.
func TestWriteErrorOfALossHasTheProblemType(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.POST("/", func(c echo.Context) error {
		<-c.Request().Context().Done()
		return echolock.WriteError(c, context.Cause(c.Request().Context()))
	}, echolock.Middleware(locktest.New(t).Locker, literal, core.WithMaxHold(time.Millisecond), core.WithProblemType("/errors/")))
	adaptertest.WantTypedLoss(t, pay(t, e, "/", "k", ""))
}

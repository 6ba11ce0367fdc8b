package echov5lock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echov5lock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A handler that was cut off and gives no answer must not look like a success, nor, unless
// nothing has happened, like a refusal after which the client may try again.
func TestHandlerThatLosesItsLease(t *testing.T) {
	t.Parallel()
	noEffect := func(c *echo.Context) error {
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
		"no answer":                {func(*echo.Context) error { return nil }, false, "lease_lost", "outcome_unknown"},
		"no effect":                {noEffect, false, "lease_lost", "unavailable"},
		"the context's end":        {func(c *echo.Context) error { return c.Request().Context().Err() }, false, "lease_lost", "outcome_unknown"},
		"the cause":                {func(c *echo.Context) error { return context.Cause(c.Request().Context()) }, false, "lease_lost", "outcome_unknown"},
		"the end of another lease": {func(*echo.Context) error { return core.ErrClosed }, true, "lease_lost", "outcome_unknown"},
		"headers": {func(c *echo.Context) error {
			c.Response().Header().Set("Retry-After", "7")
			c.Response().Header().Set("Location", "/payments/1")
			return nil
		}, false, "lease_lost", "outcome_unknown"},
		"an answer":               {func(c *echo.Context) error { return c.NoContent(http.StatusNoContent) }, false, "", ""},
		"an answer and the cause": {func(c *echo.Context) error { return errors.Join(c.NoContent(http.StatusNoContent), core.ErrLost) }, false, "", ""},
		"an error of its own":     {func(*echo.Context) error { return errors.New("own") }, false, "", ""},
		"an HTTPError":            {func(*echo.Context) error { return echo.ErrBadGateway.Wrap(core.ErrLost) }, false, "", ""},
	} {
		for stack, outside := range map[string][]echo.MiddlewareFunc{"alone": nil, "behind Gzip": {middleware.Gzip()}} {
			t.Run(name+", "+stack, func(t *testing.T) {
				t.Parallel()
				locks, limit := locktest.New(t), core.WithMaxHold(time.Millisecond)
				if test.inTime {
					limit = core.WithMaxHold(0)
				}
				e := newEcho()
				e.Use(outside...)
				handler := func(c *echo.Context) error {
					if !test.inTime {
						<-c.Request().Context().Done()
					}
					return test.handler(c)
				}
				e.POST("/lock", handler, echov5lock.Middleware(locks.Locker, byKey, limit))
				e.POST("/attempt", handler, echov5lock.Idempotent(locks.Locker, byKey, limit))
				e.POST("/inside", handler, echov5lock.Idempotent(locks.Locker, byKey), echov5lock.Middleware(locks.Locker, literal, limit))
				for path, code := range map[string]string{"/lock": test.lock, "/attempt": test.attempt, "/inside": test.attempt} {
					r := newRequest(t, http.MethodPost, path, "")
					r.Header.Set("Idempotency-Key", "k")
					r.Header.Set("Accept-Encoding", "gzip")
					adaptertest.WantLoss(t, serve(e, r), code)
				}
			})
		}
	}
}

// The headers of an answer that a middleware outside keeps back stay, although the lock was lost.
func TestKeptAnswerOfALostLease(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.Use(middleware.Gzip())
	e.POST("/", func(c *echo.Context) error {
		<-c.Request().Context().Done()
		c.Response().Header().Set("Location", "/payments/1")
		return c.NoContent(http.StatusSeeOther)
	}, echov5lock.Middleware(locktest.New(t).Locker, literal, core.WithMaxHold(time.Millisecond)))
	r := newRequest(t, http.MethodPost, "/", "")
	r.Header.Set("Accept-Encoding", "gzip")
	if w := serve(e, r); w.Code != http.StatusSeeOther || w.Header().Get("Location") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// Echo writes nothing to a WebSocket, which has its connection.
func TestWebSocketThatLosesItsLease(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.HTTPErrorHandler = func(_ *echo.Context, err error) { t.Error(err) }
	e.GET("/", func(c *echo.Context) error {
		<-c.Request().Context().Done()
		return nil
	}, echov5lock.Middleware(locktest.New(t).Locker, literal, core.WithMaxHold(time.Millisecond)))
	r := newRequest(t, http.MethodGet, "/", "")
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	serve(e, r)
}

// WriteError finds the type of the problem in the context of the request.
func TestWriteErrorOfALossHasTheProblemType(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.POST("/", func(c *echo.Context) error {
		<-c.Request().Context().Done()
		return echov5lock.WriteError(c, context.Cause(c.Request().Context()))
	}, echov5lock.Middleware(locktest.New(t).Locker, literal, core.WithMaxHold(time.Millisecond), core.WithProblemType("/errors/")))
	adaptertest.WantTypedLoss(t, pay(t, e, "/", "k", ""))
}

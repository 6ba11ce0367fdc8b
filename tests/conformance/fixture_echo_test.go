package conformance

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echolock"
)

func overEcho() *framework {
	return &framework{
		name:      "echolock",
		serve:     serveEcho,
		endpoint:  echoEndpoint,
		row:       httpRow,
		forbidden: outcome{status: http.StatusForbidden, code: "key_error"},
		hooked:    outcome{status: http.StatusTeapot},
		failure:   func(f frame) error { return f.(*echoFrame).err },
	}
}

var ofEcho = adapter[echo.Context]{
	header:      echolock.Header,
	idempotency: echolock.IdempotencyKey,
	body:        func() echolock.Key { return echolock.JSONField("id") },
	isRead:      echolock.IsRead,
	hook: func(h hook) core.Option {
		return echolock.WithErrorHandler(func(_ echo.Context, _ error) error {
			if h == ownHook {
				return echo.NewHTTPError(http.StatusTeapot, hookText)
			}
			return nil
		})
	},
}

// serveEcho registers the locks on the group and on the route.
func serveEcho(t *testing.T, locks *core.Locker, r route) server {
	t.Helper()
	stack := func(stack []lock) (middlewares []echo.MiddlewareFunc) {
		for _, l := range stack {
			middlewares = append(middlewares, echolock.Middleware(locks, ofEcho.lockKey(l), ofEcho.options(l)...))
		}
		return middlewares
	}
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	if r.recovers {
		e.Use(middleware.Recover())
	}
	if r.outer != nil {
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				f := &echoFrame{c: c, next: next}
				r.outer(f)
				return f.err
			}
		})
	}
	group := e.Group(groupPath, stack(r.group)...)
	group.Match(routeMethods, routePath, func(c echo.Context) error {
		handling := &echoCall{httpHandling: httpHandling{c.Response(), c.Request()}, c: c}
		r.handler(handling)
		return handling.err
	}, stack(r.locks)...)
	return serveHTTP(t, e)
}

type echoFrame struct {
	c    echo.Context
	next echo.HandlerFunc
	err  error
}

func (f *echoFrame) Context() context.Context { return f.c.Request().Context() }

func (f *echoFrame) SetContext(ctx context.Context) {
	f.c.SetRequest(f.c.Request().WithContext(ctx))
}

func (f *echoFrame) Request() *http.Request { return f.c.Request() }

func (f *echoFrame) Next() { f.err = f.next(f.c) }

type echoCall struct {
	httpHandling
	c   echo.Context
	err error
}

func (c *echoCall) Lease() (*core.Lease, bool) { return core.LeaseFromContext(c.c.Request().Context()) }

func (c *echoCall) Leases() []*core.Lease { return core.LeasesFromContext(c.c.Request().Context()) }
func (c *echoCall) Reply(text string)     { c.err = c.c.String(http.StatusOK, text) }
func (c *echoCall) Refuse(text string)    { c.err = echo.NewHTTPError(http.StatusConflict, text) }

var echoIdempotency = idempotency[echo.Context]{
	request: echo.Context.Request,
	user:    core.Join(core.Getter(echoUser), echolock.IdempotencyKey()),
	tenant:  core.Join(echolock.Host(), core.Getter(echoUser), echolock.IdempotencyKey()),
}

func echoUser(c echo.Context) string {
	user, _, _ := c.Request().BasicAuth()
	return user
}

// echoEndpoint registers Idempotent after the other middlewares.
func echoEndpoint(locks *core.Locker, e endpoint) http.Handler {
	server := echo.New()
	server.Logger.SetOutput(io.Discard)
	if e.recovers {
		server.Use(middleware.Recover())
	}
	if e.outer != nil {
		server.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				if !e.outer(c.Response(), c.Request()) {
					return nil
				}
				return next(c)
			}
		})
	}
	server.Use(echolock.Idempotent(locks, echoIdempotency.key(e), echoIdempotency.options(e)...))
	if e.inside != nil {
		server.Use(echolock.Idempotent(locks, echoIdempotency.user, needless))
		server.Use(echolock.Middleware(locks, ofEcho.lockKey(*e.inside), ofEcho.options(*e.inside)...))
	}
	h := func(c echo.Context) (err error) {
		attempt, _ := core.AttemptFromContext(c.Request().Context())
		e.handler(invocation{
			ResponseWriter: c.Response(), r: c.Request(), attempt: attempt,
			fail: func(status int, cause error) {
				if err = cause; status != 0 {
					err = echo.NewHTTPError(status, "failed").SetInternal(cause)
				}
			},
			bare: func(status int) { err = c.NoContent(status) },
		})
		return err
	}
	server.Any(paymentsPath, h)
	server.Any(refundsPath, h)
	return server
}

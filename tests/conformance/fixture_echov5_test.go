package conformance

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echov5lock"
)

func overEchov5() *framework {
	return &framework{
		name:      "echov5lock",
		serve:     serveEchov5,
		endpoint:  echov5Endpoint,
		row:       httpRow,
		forbidden: outcome{status: http.StatusForbidden, code: "key_error"},
		hooked:    outcome{status: http.StatusTeapot},
		failure:   func(f frame) error { return f.(*echov5Frame).err },
	}
}

var ofEchov5 = adapter[*echo.Context]{
	header:      echov5lock.Header,
	idempotency: echov5lock.IdempotencyKey,
	body:        func() echov5lock.Key { return echov5lock.JSONField("id") },
	isRead:      echov5lock.IsRead,
	hook: func(h hook) core.Option {
		return echov5lock.WithErrorHandler(func(_ *echo.Context, _ error) error {
			if h == ownHook {
				return echo.NewHTTPError(http.StatusTeapot, hookText)
			}
			return nil
		})
	},
}

// serveEchov5 registers the locks on the group and on the route.
func serveEchov5(t *testing.T, locks *core.Locker, r route) server {
	t.Helper()
	stack := func(stack []lock) (middlewares []echo.MiddlewareFunc) {
		for _, l := range stack {
			middlewares = append(middlewares, echov5lock.Middleware(locks, ofEchov5.lockKey(l), ofEchov5.options(l)...))
		}
		return middlewares
	}
	e := echo.NewWithConfig(echo.Config{Logger: slog.New(slog.DiscardHandler)})
	if r.recovers {
		e.Use(middleware.Recover())
	}
	if r.outer != nil {
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				f := &echov5Frame{c: c, next: next}
				r.outer(f)
				return f.err
			}
		})
	}
	group := e.Group(groupPath, stack(r.group)...)
	group.Match(routeMethods, routePath, func(c *echo.Context) error {
		handling := &echov5Call{httpHandling: httpHandling{c.Response(), c.Request()}, c: c}
		r.handler(handling)
		return handling.err
	}, stack(r.locks)...)
	return serveHTTP(t, e)
}

type echov5Frame struct {
	c    *echo.Context
	next echo.HandlerFunc
	err  error
}

func (f *echov5Frame) Context() context.Context { return f.c.Request().Context() }

func (f *echov5Frame) SetContext(ctx context.Context) {
	f.c.SetRequest(f.c.Request().WithContext(ctx))
}

func (f *echov5Frame) Request() *http.Request { return f.c.Request() }

func (f *echov5Frame) Next() { f.err = f.next(f.c) }

type echov5Call struct {
	httpHandling
	c   *echo.Context
	err error
}

func (c *echov5Call) Lease() (*core.Lease, bool) {
	return core.LeaseFromContext(c.c.Request().Context())
}

func (c *echov5Call) Leases() []*core.Lease { return core.LeasesFromContext(c.c.Request().Context()) }
func (c *echov5Call) Reply(text string)     { c.err = c.c.String(http.StatusOK, text) }
func (c *echov5Call) Refuse(text string)    { c.err = echo.NewHTTPError(http.StatusConflict, text) }

var echov5Idempotency = idempotency[*echo.Context]{
	request: (*echo.Context).Request,
	user:    core.Join(core.Getter(echov5User), echov5lock.IdempotencyKey()),
	tenant:  core.Join(echov5lock.Host(), core.Getter(echov5User), echov5lock.IdempotencyKey()),
}

func echov5User(c *echo.Context) string {
	user, _, _ := c.Request().BasicAuth()
	return user
}

// echov5Endpoint registers Idempotent after the other middlewares.
func echov5Endpoint(locks *core.Locker, e endpoint) http.Handler {
	server := echo.NewWithConfig(echo.Config{Logger: slog.New(slog.DiscardHandler)})
	if e.recovers {
		server.Use(middleware.Recover())
	}
	if e.outer != nil {
		server.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				if !e.outer(c.Response(), c.Request()) {
					return nil
				}
				return next(c)
			}
		})
	}
	server.Use(echov5lock.Idempotent(locks, echov5Idempotency.key(e), echov5Idempotency.options(e)...))
	if e.inside != nil {
		server.Use(echov5lock.Idempotent(locks, echov5Idempotency.user, needless))
		server.Use(echov5lock.Middleware(locks, ofEchov5.lockKey(*e.inside), ofEchov5.options(*e.inside)...))
	}
	h := func(c *echo.Context) (err error) {
		attempt, _ := core.AttemptFromContext(c.Request().Context())
		e.handler(invocation{
			ResponseWriter: c.Response(), r: c.Request(), attempt: attempt,
			fail: func(status int, cause error) {
				if err = cause; status != 0 {
					err = echo.NewHTTPError(status, "failed").Wrap(cause)
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

package echov5lock_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	echov4 "github.com/labstack/echo/v4"
	"github.com/labstack/echo/v5"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/echov5lock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// During a migration one program has routes of Echo v4 and v5. Their locks exclude each other, and a
// copy gets the answer of the other one.
func TestEchoV4AndV5ShareLocksAndAnswers(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	v4, v5 := echov4.New(), newEcho()
	v4.POST("/accounts/:id", func(c echov4.Context) error {
		w := serve(v5, newRequest(t, http.MethodPost, "/accounts/42", ""))
		adaptertest.WantProblem(t, w, http.StatusConflict, "busy")
		return c.NoContent(http.StatusNoContent)
	}, echolock.Middleware(locks, echolock.Param("id")))
	v5.POST("/accounts/:id", func(c *echo.Context) error {
		w := httptest.NewRecorder()
		v4.ServeHTTP(w, newRequest(t, http.MethodPost, "/accounts/42", ""))
		adaptertest.WantProblem(t, w, http.StatusConflict, "busy")
		return ok(c)
	}, echov5lock.Middleware(locks, echov5lock.Param("id")))
	for name, h := range map[string]http.Handler{"v4": v4, "v5": v5} {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, newRequest(t, http.MethodPost, "/accounts/42", "")); w.Code != http.StatusNoContent {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}

	v4.POST("/payments/:id", func(c echov4.Context) error { return c.String(http.StatusCreated, "v4") }, echolock.Idempotent(locks, echolock.IdempotencyKey()))
	v5.POST("/payments/:id", func(c *echo.Context) error { return c.String(http.StatusCreated, "v5") }, echov5lock.Idempotent(locks, byKey))
	for first, hs := range map[string][2]http.Handler{"v4": {v4, v5}, "v5": {v5, v4}} {
		for _, h := range hs {
			if w := adaptertest.Pay(t, h, "/payments/7", first, ""); w.Body.String() != first {
				t.Errorf("first %s: %d %s", first, w.Code, w.Body)
			}
		}
	}
}

func TestMiddlewareChecksItsArguments(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for want, register := range map[string]func(){
		"echov5lock: Middleware needs a locker":                     func() { echov5lock.Middleware(nil, literal) },
		"echov5lock: Middleware needs a key":                        func() { echov5lock.Middleware(locks, echov5lock.Key{}) },
		"WithStored has no effect on Middleware":                    func() { echov5lock.Middleware(locks, literal, core.WithStored(func(int) bool { return true })) },
		"echolock.WithErrorHandler is an option of another adapter": func() { echov5lock.Middleware(locks, literal, echolock.WithErrorHandler(echolock.WriteError)) },
		"echov5lock: Idempotent needs a key":                        func() { echov5lock.Idempotent(locks, echov5lock.Key{}) },
	} {
		adaptertest.WantPanic(t, register, want)
	}
}

// The caller of a lease of a middleware is the code that made the middleware.
func TestCallerIsTheCodeThatMadeTheMiddleware(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*core.Locker, echov5lock.Key, ...core.Option) echo.MiddlewareFunc{
		"Middleware": echov5lock.Middleware, "Idempotent": echov5lock.Idempotent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithCaller(true))
			e := newEcho()
			e.POST("/", func(c *echo.Context) error { adaptertest.CloseLocker(c.Request()); return nil }, build(locks.Locker, literal))
			adaptertest.CheckCaller(t, locks.Locker, e, ".TestCallerIsTheCodeThatMadeTheMiddleware.func")
		})
	}
}

// After the handler has ended in any way, the middlewares outside and the
// HTTPErrorHandler get the request from before the lock, and the lock is free.
func TestRequestIsRestored(t *testing.T) {
	t.Parallel()
	crash, failure := errors.New("crash"), errors.New("failure")
	for name, test := range map[string]struct {
		end    func() error
		panics any
		err    error
	}{
		"returns":            {func() error { return nil }, nil, nil},
		"fails":              {func() error { return failure }, nil, failure},
		"panics":             {func() error { panic(crash) }, crash, nil},
		"ends its goroutine": {func() error { runtime.Goexit(); return nil }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			e := newEcho()
			r := newRequest(t, http.MethodGet, "/", "")
			restored := func(c *echo.Context, where string) {
				if c.Request() != r || r.Context().Err() != nil {
					t.Errorf("%s sees another request, or its context has ended: %v", where, r.Context().Err())
				}
				if !adaptertest.IsFree(t, locks.Locker) {
					t.Errorf("%s sees the lock held", where)
				}
			}
			handled := error(nil)
			e.HTTPErrorHandler = func(c *echo.Context, err error) {
				handled = err
				restored(c, "the HTTPErrorHandler")
			}
			outside := false
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c *echo.Context) error {
					defer func() {
						outside = true
						restored(c, "the middleware outside")
					}()
					return next(c)
				}
			})
			// Middlewares behind the lock may go on with a request of their own.
			inside := func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c *echo.Context) error {
					type key struct{}
					c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), key{}, 1)))
					return next(c)
				}
			}
			e.GET("/", func(c *echo.Context) error {
				if lease, _ := core.LeaseFromContext(c.Request().Context()); lease.Key() != theKey || adaptertest.IsFree(t, locks.Locker) {
					t.Error("the handler runs without its lock")
				}
				return test.end()
			}, echov5lock.Middleware(locks.Locker, literal), inside)

			done := make(chan any, 1)
			go func() {
				defer func() { done <- recover() }()
				serve(e, r)
			}()
			if caught := suite.Receive(t, "the handler ends", done); caught != test.panics {
				t.Errorf("panic %v", caught)
			}
			if !outside || !errors.Is(handled, test.err) {
				t.Errorf("outside %v, handled %v", outside, handled)
			}
		})
	}
}

// The handler gets Echo's own Response with the server's own writer.
func TestResponseIsNotWrapped(t *testing.T) {
	t.Parallel()
	e := newEcho()
	var outside http.ResponseWriter
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error { outside = c.Response(); return next(c) }
	})
	e.GET("/", func(c *echo.Context) error {
		if c.Response() != outside {
			t.Errorf("the handler got a %T", c.Response())
		}
		return ok(c)
	}, echov5lock.Middleware(locktest.New(t).Locker, literal))
	serve(e, newRequest(t, http.MethodGet, "/", ""))
}

package echolock_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Recover may stand on either side of the lock. Outside, it answers after the lock is
// freed; inside, while the lock is held.
func TestRecoverOnEitherSideOfTheLock(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	lock := echolock.Middleware(locks.Locker, literal)
	recovers := middleware.Recover()
	for name, test := range map[string]struct {
		stack []echo.MiddlewareFunc
		free  bool
	}{
		"outside": {[]echo.MiddlewareFunc{recovers, lock}, true},
		"inside":  {[]echo.MiddlewareFunc{lock, recovers}, false},
	} {
		e := newEcho()
		e.HTTPErrorHandler = func(err error, c echo.Context) {
			if free := adaptertest.IsFree(t, locks.Locker); free != test.free {
				t.Errorf("%s: when the panic is answered, the lock is free: %v", name, free)
			}
			e.DefaultHTTPErrorHandler(err, c)
		}
		e.GET("/", func(echo.Context) error { panic("crash") }, test.stack...)
		if w := serve(e, newRequest(t, http.MethodGet, "/", "")); w.Code != http.StatusInternalServerError {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if !adaptertest.IsFree(t, locks.Locker) {
			t.Errorf("%s: the lock is held after a panic", name)
		}
	}
}

// A request without authentication neither takes the lock nor gets a 409. An
// authenticated request takes the lock of its user.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold("user:ada")()
	knows := func(user string, c echo.Context) bool {
		c.Set("user", user)
		return user == "ada" || user == "bob"
	}
	lock := echolock.Middleware(locks.Locker, echolock.Get("user").Named("user"))
	for scheme, test := range map[string]struct {
		auth   echo.MiddlewareFunc
		attach func(r *http.Request, user string)
	}{
		"KeyAuth": {
			middleware.KeyAuth(func(token string, c echo.Context) (bool, error) { return knows(token, c), nil }),
			func(r *http.Request, user string) { r.Header.Set("Authorization", "Bearer "+user) },
		},
		"BasicAuth": {
			middleware.BasicAuth(func(user, _ string, c echo.Context) (bool, error) { return knows(user, c), nil }),
			func(r *http.Request, user string) { r.SetBasicAuth(user, "") },
		},
	} {
		e := newEcho()
		e.GET("/", ok, test.auth, lock)
		for user, want := range map[string]int{"eve": 401, "ada": 409, "bob": 204} {
			r := newRequest(t, http.MethodGet, "/", "")
			test.attach(r, user)
			if w := serve(e, r); w.Code != want {
				t.Errorf("%s, %s: %d %s", scheme, user, w.Code, w.Body)
			}
		}
	}
}

// ContextTimeout around the lock limits the wait too. The lock answers,
// although ContextTimeout wraps the error.
func TestContextTimeoutOutsideLimitsTheWait(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold(theKey)()
	e := newEcho()
	e.GET("/", ok, middleware.ContextTimeout(20*time.Millisecond),
		echolock.Middleware(locks.Locker, literal, core.WithWait(time.Minute)))
	w := serve(e, newRequest(t, http.MethodGet, "/", ""))
	adaptertest.WantProblem(t, w, http.StatusServiceUnavailable, "deadline")
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("header %v", w.Header())
	}
}

// ContextTimeout behind the lock limits the handler. The lock is held while the
// handler runs.
func TestContextTimeoutInsideLimitsTheHandler(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	e := newEcho()
	e.GET("/", func(c echo.Context) error {
		ctx := c.Request().Context()
		<-ctx.Done()
		if adaptertest.IsFree(t, locks.Locker) {
			t.Error("the lock is free while the handler runs")
		}
		return context.Cause(ctx)
	}, echolock.Middleware(locks.Locker, literal), middleware.ContextTimeout(20*time.Millisecond))
	if w := serve(e, newRequest(t, http.MethodGet, "/", "")); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !adaptertest.IsFree(t, locks.Locker) {
		t.Error("the lock is held after the request")
	}
}

// Echo's deprecated Timeout does not wait for its handler. Around the lock, the lock
// is held until the handler returns. Behind the lock it cannot be tested: its
// goroutine and the outer middlewares race for the context.
func TestDeprecatedTimeoutOutsideKeepsTheLock(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	timeout := middleware.TimeoutWithConfig(middleware.TimeoutConfig{Timeout: time.Minute}) //nolint:staticcheck // people have it
	e := newEcho()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	end := make(chan struct{})
	e.GET("/", func(echo.Context) error {
		leave() // which Timeout takes as it takes the end of its time
		<-end
		return nil // c may be another request's by now
	}, timeout, echolock.Middleware(locks.Locker, literal))
	if w := serve(e, newRequest(t, http.MethodGet, "/", "").WithContext(ctx)); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if adaptertest.IsFree(t, locks.Locker) {
		t.Error("the lock is free while the handler runs")
	}
	close(end)
	suite.Eventually(t, "the lock is free", func() bool { return adaptertest.IsFree(t, locks.Locker) })
}

// CORS before the lock answers preflight requests without the lock.
func TestCORS(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold(theKey)()
	e := newEcho()
	e.Use(middleware.CORS(), echolock.Middleware(locks.Locker, literal))
	e.POST("/", ok)
	r := newRequest(t, http.MethodOptions, "/", "")
	r.Header.Set("Origin", "https://app.example")
	r.Header.Set("Access-Control-Request-Method", "POST")
	if w := serve(e, r); w.Code != http.StatusNoContent || w.Header().Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("preflight: %d %s", w.Code, w.Body)
	}
	r = newRequest(t, http.MethodPost, "/", "")
	r.Header.Set("Origin", "https://app.example")
	w := serve(e, r)
	adaptertest.WantProblem(t, w, http.StatusConflict, "busy")
	if w.Header().Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("a script cannot read the refusal: %v", w.Header())
	}
}

// Gzip may stand on either side of the lock. An error that is rendered after all
// middlewares is not compressed.
func TestGzipOnEitherSideOfTheLock(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	lock := echolock.Middleware(locks.Locker, literal)
	zip := middleware.Gzip()
	for name, stack := range map[string][]echo.MiddlewareFunc{
		"outside": {zip, lock},
		"inside":  {lock, zip},
	} {
		e := newEcho()
		e.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, "hello") }, stack...)
		r := newRequest(t, http.MethodGet, "/", "")
		r.Header.Set("Accept-Encoding", "gzip")
		w := serve(e, r)
		plain, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatalf("%s: %d, %v", name, w.Code, err)
		}
		if text, err := io.ReadAll(plain); string(text) != "hello" || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		release := locks.Hold(theKey)
		adaptertest.WantProblem(t, serve(e, r), http.StatusConflict, "busy")
		release()
	}
}

// A middleware outside gets the refusal as an error, and may answer with a success
// instead.
func TestOuterMiddlewareMayAnswerARefusal(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold(theKey)()
	e := newEcho()
	stale := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := next(c); !errors.Is(err, core.ErrBusy) {
				return err
			}
			return c.JSON(http.StatusOK, "stale")
		}
	}
	e.GET("/", ok, stale, echolock.Middleware(locks.Locker, literal))
	w := serve(e, newRequest(t, http.MethodGet, "/", ""))
	if w.Code != http.StatusOK || w.Body.String() != "\"stale\"\n" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	if w.Header().Get("Retry-After") != "" || w.Header().Get("Cache-Control") != "" {
		t.Errorf("the headers of a refusal: %v", w.Header())
	}
}

// A middleware outside may retry a refused request. The answer of the handler then
// has nothing of the refusal.
func TestOuterMiddlewareMayRetryARefusal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler echo.HandlerFunc
		status  int
	}{
		"a success":             {ok, 204},
		"a body without status": {func(c echo.Context) error { _, err := c.Response().Write([]byte("mine")); return err }, 200},
		"an error":              {func(echo.Context) error { return echo.ErrPaymentRequired }, 402},
		"a conflict of its own": {func(echo.Context) error { return echo.ErrConflict }, 409},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			release := locks.Hold(theKey)
			e := newEcho()
			again := func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					for range 2 {
						if err := next(c); !errors.Is(err, core.ErrBusy) {
							t.Errorf("while the lock is held: %v", err)
						}
					}
					release()
					return next(c)
				}
			}
			e.GET("/", test.handler, again, echolock.Middleware(locks.Locker, literal))
			w := serve(e, newRequest(t, http.MethodGet, "/", ""))
			if w.Code != test.status || w.Header().Get("Retry-After") != "" || w.Header().Get("Cache-Control") != "" {
				t.Errorf("%d %v", w.Code, w.Header())
			}
		})
	}
}

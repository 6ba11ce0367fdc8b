package echov5lock_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echov5lock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// Gzip may stand on either side of the lock. An error that is rendered after all middlewares is
// not compressed.
func TestGzipOnEitherSideOfTheLock(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	lock, zip := echov5lock.Middleware(locks.Locker, literal), middleware.Gzip()
	for name, stack := range map[string][]echo.MiddlewareFunc{"outside": {zip, lock}, "inside": {lock, zip}} {
		e := newEcho()
		e.GET("/", func(c *echo.Context) error {
			_, flushes := c.Response().(http.Flusher)
			if _, hijacks := c.Response().(http.Hijacker); !flushes || !hijacks {
				t.Errorf("%s: the writer of the handler flushes: %v, hijacks: %v", name, flushes, hijacks)
			}
			return c.String(http.StatusOK, "hello")
		}, stack...)
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
		return func(c *echo.Context) error {
			if err := next(c); !errors.Is(err, core.ErrBusy) {
				return err
			}
			return c.JSON(http.StatusOK, "stale")
		}
	}
	e.GET("/", ok, stale, echov5lock.Middleware(locks.Locker, literal))
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
		"a body without status": {func(c *echo.Context) error { _, err := c.Response().Write([]byte("mine")); return err }, 200},
		"an error":              {func(*echo.Context) error { return echo.NewHTTPError(http.StatusConflict, "own") }, 409},
	} {
		for kind, build := range map[string]func(*core.Locker, echov5lock.Key, ...core.Option) echo.MiddlewareFunc{
			"Middleware": echov5lock.Middleware, "Idempotent": echov5lock.Idempotent,
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				locks := locktest.New(t)
				isFree := false
				key := core.KeyOf(func(*echo.Context) (string, error) {
					if isFree {
						return theKey, nil
					}
					return "", core.ErrInvalidKey
				})
				e := newEcho()
				again := func(next echo.HandlerFunc) echo.HandlerFunc {
					return func(c *echo.Context) error {
						for range 2 {
							if err := next(c); !errors.Is(err, core.ErrInvalidKey) {
								t.Errorf("the first tries: %v", err)
							}
						}
						isFree = true
						return next(c)
					}
				}
				e.POST("/", test.handler, again, build(locks.Locker, key))
				w := serve(e, newRequest(t, http.MethodPost, "/", ""))
				if w.Code != test.status || w.Header().Get("Retry-After") != "" || w.Header().Get("Cache-Control") != "" {
					t.Errorf("%d %v", w.Code, w.Header())
				}
			})
		}
	}
}

// A request that was refused, and has run, is refused as any other one.
func TestRefusalAfterATry(t *testing.T) {
	t.Parallel()
	tries := 0
	key := core.KeyOf(func(*echo.Context) (string, error) {
		if tries++; tries == 2 {
			return theKey, nil
		}
		return "", core.ErrInvalidKey
	})
	e := newEcho()
	e.GET("/", func(*echo.Context) error { return echo.ErrBadGateway }, func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			_, _ = next(c), next(c)
			return next(c)
		}
	}, echov5lock.Middleware(locktest.New(t).Locker, key))
	adaptertest.WantProblem(t, serve(e, newRequest(t, http.MethodGet, "/", "")), http.StatusBadRequest, "invalid_key")
}

// The answers for unknown paths and wrong methods, for each place of the lock.
func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	hasID := func(c *echo.Context) bool { _, has := c.PathValues().Get("id"); return has }
	param := echov5lock.Middleware(locks.Locker, echov5lock.Param("id"))
	careful := echov5lock.Middleware(locks.Locker, echov5lock.Param("id").When(hasID))
	const route = "/accounts/:id/balance"
	for name, test := range map[string]struct {
		register                                   func(e *echo.Echo)
		known, blank, unknown, nearby, wrongMethod int
	}{
		"route":                           {func(e *echo.Echo) { e.GET(route, ok, param) }, 204, 400, 404, 404, 405},
		"group, key of its path":          {func(e *echo.Echo) { e.Group("/accounts/:id", param).GET("/balance", ok) }, 204, 400, 404, 404, 404},
		"group, key of the route's path":  {func(e *echo.Echo) { e.Group("/accounts", param).GET("/:id/balance", ok) }, 204, 400, 404, 400, 400},
		"Use, where there is a parameter": {func(e *echo.Echo) { e.Use(careful); e.GET(route, ok) }, 204, 400, 404, 404, 405},
		"group, where there is one":       {func(e *echo.Echo) { e.Group("/accounts", careful).GET("/:id/balance", ok) }, 204, 400, 404, 404, 404},
		"Pre, key of the path":            {func(e *echo.Echo) { e.Pre(param); e.GET(route, ok) }, 400, 400, 400, 400, 400}, // nothing is routed yet
	} {
		e := newEcho()
		test.register(e)
		for _, request := range []struct {
			method, path string
			want         int
		}{
			{http.MethodDelete, "/accounts/7/balance", test.wrongMethod},
			{http.MethodGet, "/accounts/7/balance", test.known},
			{http.MethodGet, "/accounts//balance", test.blank},
			{http.MethodGet, "/other/7/balance", test.unknown},
			{http.MethodGet, "/accounts/7/nothing", test.nearby},
		} {
			if w := serve(e, newRequest(t, request.method, request.path, "")); w.Code != request.want {
				t.Errorf("%s: %s %s: %d %s", name, request.method, request.path, w.Code, w.Body)
			}
		}
	}
}

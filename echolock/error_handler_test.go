package echolock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// If the error handler does not answer, the middleware does.
func TestErrorHandler(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	mine := errors.New("mine")
	for name, test := range map[string]struct {
		handle func(c echo.Context, err error) error
		status int
		body   string
	}{
		"the default":             {echolock.WriteError, 400, `"code":"no_key"`},
		"nothing":                 {func(echo.Context, error) error { return nil }, 400, `"code":"no_key"`},
		"the error itself":        {func(_ echo.Context, err error) error { return err }, 400, `"code":"no_key"`},
		"a header only":           {func(c echo.Context, _ error) error { c.Response().Header().Set("X-A", "1"); return nil }, 400, `"code":"no_key"`},
		"an HTTPError":            {func(echo.Context, error) error { return echo.ErrLocked }, 423, `{"message":"Locked"}`},
		"an error of its own":     {func(echo.Context, error) error { return mine }, 500, `{"message":"Internal Server Error"}`},
		"an answer":               {func(c echo.Context, _ error) error { return c.String(http.StatusTeapot, "mine") }, 418, "mine"},
		"an answer with an error": {func(c echo.Context, err error) error { _ = c.String(http.StatusTeapot, "mine"); return err }, 418, "mine"},
		"a success on purpose":    {func(c echo.Context, _ error) error { return c.NoContent(http.StatusAccepted) }, 202, ""},
		"a body without a status": {func(c echo.Context, _ error) error { _, err := c.Response().Write([]byte("mine")); return err }, 400, "mine"},
		"the request": {func(c echo.Context, err error) error {
			if !errors.Is(err, core.ErrNoKey) {
				t.Errorf("error %v", err)
			}
			return c.String(http.StatusTeapot, c.Path())
		}, 418, "/accounts/:id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEcho()
			// The middleware itself answers nothing: what is not answered yet
			// is an error.
			answered := false
			handle := func(c echo.Context, err error) error {
				answer := test.handle(c, err)
				answered = c.Response().Committed
				return answer
			}
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					err := next(c)
					if c.Response().Committed != answered || !answered && err == nil {
						t.Errorf("answered %v, and the error is %v", c.Response().Committed, err)
					}
					if answered && err != nil && name != "an answer with an error" {
						t.Errorf("answered, and yet %v", err)
					}
					return err
				}
			})
			e.GET("/accounts/:id", func(echo.Context) error { t.Error("the handler has run"); return nil },
				echolock.Middleware(locks.Locker, echolock.Header("X-Account"), echolock.WithErrorHandler(handle)))
			w := serve(e, newRequest(t, http.MethodGet, "/accounts/7", ""))
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.body) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

// Errors of the application's key are answered with their own status, if
// they have one.
func TestKeyErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err    error
		status int
		body   string
	}{
		"another error":            {errors.New(theKey), 500, `"code":"key_error"`},
		"an HTTPError":             {echo.NewHTTPError(http.StatusForbidden, "not yours"), 403, `{"message":"not yours"}`},
		"a fault of the key's":     {echo.ErrServiceUnavailable, 503, `{"message":"Service Unavailable"}`},
		"one of Echo's":            {echo.ErrUnauthorized, 401, `{"message":"Unauthorized"}`},
		"a wrapped one":            {fmt.Errorf("%s: %w", theKey, echo.ErrUnauthorized), 401, `{"message":"Unauthorized"}`},
		"a success":                {echo.NewHTTPError(http.StatusOK, "fine"), 500, `"code":"key_error"`},
		"no status at all":         {&echo.HTTPError{Message: "none"}, 500, `"code":"key_error"`},
		"one that means something": {echo.ErrUnauthorized.WithInternal(fmt.Errorf("x: %w", core.ErrNoKey)), 400, `"code":"no_key"`},
		"a success that does":      {echo.NewHTTPError(http.StatusOK, "fine").SetInternal(core.ErrInvalidKey), 400, `"code":"invalid_key"`},
		"one around another":       {echo.ErrForbidden.WithInternal(echo.NewHTTPError(http.StatusOK, "fine")), 403, `{"message":"Forbidden"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			warned := 0
			locks := locktest.New(t, core.WithObserver(func(e core.Event) {
				if e.Kind == core.Warned {
					warned++
				}
			}))
			e := newEcho()
			e.GET("/", func(echo.Context) error { t.Error("the handler has run"); return nil },
				echolock.Middleware(locks.Locker, core.KeyOf(func(echo.Context) (string, error) { return "", test.err })),
				func(next echo.HandlerFunc) echo.HandlerFunc { return next })
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					err := next(c)
					if !errors.Is(err, test.err) {
						t.Errorf("%v is not the key's error", err)
					}
					if answer := err.(*echo.HTTPError); answer.Code != test.status { //nolint:errorlint // as Echo's own handler does
						t.Errorf("outside the code is %d", answer.Code)
					}
					return err
				}
			})
			w := serve(e, newRequest(t, http.MethodGet, "/", ""))
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.body) || strings.Contains(w.Body.String(), theKey) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if isFault := test.status >= http.StatusInternalServerError; (warned == 1) != isFault || warned > 1 {
				t.Errorf("%d warnings", warned)
			}
		})
	}
}

// manyErrors is an error that cannot be compared.
type manyErrors []error

func (manyErrors) Error() string     { return "many" }
func (m manyErrors) Unwrap() []error { return m }

// An error that cannot be compared is answered as any other.
func TestUncomparableError(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	for name, handle := range map[string]func(echo.Context, error) error{
		"nothing":          func(echo.Context, error) error { return nil },
		"the error itself": func(_ echo.Context, err error) error { return err },
		"the default":      echolock.WriteError,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEcho()
			e.GET("/", ok, echolock.Middleware(locks.Locker, core.KeyOf(func(c echo.Context) (string, error) {
				_, err := echolock.Header("X-No").Read(c)
				return "", manyErrors{err} // which has a description
			}), echolock.WithErrorHandler(handle)))
			adaptertest.WantProblem(t, serve(e, newRequest(t, http.MethodGet, "/", "")), http.StatusBadRequest, "no_key")
		})
	}
}

// WriteError accepts an error that the application has wrapped.
func TestWriteErrorOfAnHTTPError(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold(theKey)()
	e := newEcho()
	wrap := echolock.WithErrorHandler(func(c echo.Context, err error) error {
		return echolock.WriteError(c, echo.NewHTTPError(http.StatusOK, "fine").SetInternal(err))
	})
	e.GET("/", ok, echolock.Middleware(locks.Locker, echolock.Header("X-No"), wrap))
	adaptertest.WantProblem(t, serve(e, newRequest(t, http.MethodGet, "/", "")), http.StatusBadRequest, "no_key")

	e.GET("/late", ok, echolock.Middleware(locks.Locker, literal, core.WithWait(time.Minute), wrap))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r := newRequest(t, http.MethodGet, "/late", "").WithContext(ctx)
	adaptertest.WantProblem(t, serve(e, r), http.StatusServiceUnavailable, "deadline")
}

// A key may answer by itself. Nothing is added to its answer.
func TestKeyAnswers(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	e := newEcho()
	e.GET("/", ok, echolock.Middleware(locks.Locker, core.KeyOf(func(c echo.Context) (string, error) {
		return "", c.String(http.StatusUnauthorized, "log in")
	}), echolock.WithErrorHandler(func(c echo.Context, _ error) error {
		return c.String(http.StatusTeapot, "mine")
	})))
	if w := serve(e, newRequest(t, http.MethodGet, "/", "")); w.Code != http.StatusUnauthorized || w.Body.String() != "log in" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

package echov5lock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echov5lock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// An error that a handler returns is rendered inside Idempotent, and its answer counts by its
// status. WithUnknown gets the error, also if it is not rendered.
func TestReturnedErrors(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	errFunds := errors.New("no funds")
	known := core.WithUnknown(func(f core.Failure) bool { return !errors.Is(f.Err, errFunds) })
	silent := func(c *echo.Context, err error) {
		if errors.Is(err, core.ErrUnreplayable) || errors.Is(err, core.ErrOutcomeUnknown) {
			echo.DefaultHTTPErrorHandler(false)(c, err)
		}
	}
	for name, test := range map[string]struct {
		opts     []core.Option
		handler  echo.HTTPErrorHandler
		err      error
		decision core.Ending
		status   int
		runs     int
		code     string // of the copy
	}{
		"an HTTPError":             {nil, nil, echo.NewHTTPError(http.StatusPaymentRequired, "no funds"), 0, 402, 1, ""},
		"one of Echo's":            {nil, nil, echo.ErrNotFound, 0, 404, 1, ""},
		"by default":               {nil, nil, errFunds, 0, 500, 1, "outcome_unknown"},
		"WithFreeOnFailure":        {[]core.Option{core.WithFreeOnFailure()}, nil, errFunds, 0, 500, 2, ""},
		"a known error":            {[]core.Option{known}, nil, fmt.Errorf("pay: %w", errFunds), 0, 500, 2, ""},
		"a 503":                    {nil, nil, echo.ErrServiceUnavailable, 0, 503, 2, ""},
		"a 502":                    {nil, nil, echo.ErrBadGateway, 0, 502, 1, "outcome_unknown"},
		"a timeout of its own":     {nil, nil, context.DeadlineExceeded, 0, 500, 1, "outcome_unknown"},
		"not rendered":             {nil, silent, errFunds, 0, 200, 1, "outcome_unknown"},
		"not rendered, known":      {[]core.Option{known}, silent, errFunds, 0, 200, 2, ""},
		"not rendered, a 503":      {nil, silent, echo.ErrServiceUnavailable, 0, 200, 2, ""},
		"not rendered, a 200":      {nil, silent, echo.NewHTTPError(http.StatusOK, ""), 0, 200, 1, "outcome_unknown"},
		"not rendered, and commit": {nil, silent, errFunds, core.EndCommit, 200, 1, "completed_unreplayable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEcho()
			if test.handler != nil {
				e.HTTPErrorHandler = test.handler
			}
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c *echo.Context) error {
					err := next(c)
					if errors.Is(err, test.err) {
						t.Errorf("those outside see %v", err)
					}
					return err
				}
			})
			runs := 0
			e.POST("/", func(c *echo.Context) error {
				runs++
				attempt, _ := core.AttemptFromContext(c.Request().Context())
				attempt.Decide(test.decision)
				return test.err
			}, echov5lock.Idempotent(locks, core.Join(echov5lock.Literal(name), byKey), test.opts...))
			first := pay(t, e, "/", "k", "")
			later := pay(t, e, "/", "k", "")
			if first.Code != test.status || runs != test.runs {
				t.Errorf("%d runs, the first: %d %s", runs, first.Code, first.Body)
			}
			if test.code != "" {
				adaptertest.WantProblem(t, later, http.StatusConflict, test.code)
			} else if later.Code != test.status || later.Body.String() != first.Body.String() {
				t.Errorf("the copy: %d %s", later.Code, later.Body)
			}
		})
	}
}

// The hooks of a middleware outside run once for a copy too, and can change its
// header.
func TestHooksOfACopy(t *testing.T) {
	t.Parallel()
	e := newEcho()
	before, after := 0, 0
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			response, _ := echo.UnwrapResponse(c.Response())
			response.Before(func() {
				before++
				c.Response().Header().Set("X-Before", fmt.Sprint(before))
			})
			response.After(func() { after++ })
			return next(c)
		}
	})
	e.POST("/", func(c *echo.Context) error { return c.String(http.StatusCreated, "paid") },
		echov5lock.Idempotent(locktest.New(t).Locker, byKey))
	for i := 1; i <= 3; i++ {
		w := pay(t, e, "/", "hooks", "")
		if before != i || after != i || w.Header().Get("X-Before") != fmt.Sprint(i) || w.Body.String() != "paid" {
			t.Errorf("%d: before %d, after %d; %v %s", i, before, after, w.Header(), w.Body)
		}
	}
}

// A recovery outside answers after a panic, with nothing of what the handler had written.
func TestRecoverAfterIdempotent(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.Use(middleware.Recover())
	e.POST("/", func(c *echo.Context) error {
		_ = c.String(http.StatusCreated, "paid")
		panic("crash")
	}, echov5lock.Idempotent(locktest.New(t).Locker, byKey))
	if w := pay(t, e, "/", "panic", ""); w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "paid") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// With Gzip outside, a copy gets the first answer.
func TestGzipOutsideIdempotent(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.Use(middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 10}))
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			w := c.Response()
			err := next(c)
			if c.Response() != w {
				t.Errorf("outside the writer is a %T", c.Response())
			}
			return err
		}
	})
	e.POST("/", func(c *echo.Context) error { return c.String(http.StatusOK, c.QueryParam("b")) },
		echov5lock.Idempotent(locktest.New(t).Locker, byKey))
	for _, body := range []string{"short", "looooooooooooooooooooooooooong", ""} {
		var answers []string
		for range 2 {
			r := newRequest(t, http.MethodPost, "/?b="+body, "")
			r.Header.Set("Accept-Encoding", "gzip")
			r.Header.Set("Idempotency-Key", "k"+body)
			w := serve(e, r)
			answers = append(answers, fmt.Sprint(w.Code, w.Header().Get("Content-Encoding"), w.Body.String()))
		}
		if answers[0] != answers[1] || strings.Contains(answers[0], body) == (len(body) > 10) {
			t.Errorf("%q", answers)
		}
	}
}

// A timeout outside answers for a handler whose context it ends, as without Idempotent. Inside, its
// 503 leaves the outcome unknown.
func TestContextTimeoutOnEitherSideOfIdempotent(t *testing.T) {
	t.Parallel()
	once := echov5lock.Idempotent(locktest.New(t).Locker, byKey, core.WithClientCancel(true))
	timeout := middleware.ContextTimeout(time.Second) // outside, the request has to begin within it
	for name, stack := range map[string][]echo.MiddlewareFunc{"outside": {timeout, once}, "inside": {once, timeout}} {
		e := newEcho()
		runs := 0
		e.POST("/"+name, func(c *echo.Context) error {
			runs++
			<-c.Request().Context().Done()
			return c.Request().Context().Err()
		}, stack...)
		first := pay(t, e, "/"+name, "k", "")
		if first.Code != http.StatusServiceUnavailable || !strings.Contains(first.Body.String(), `{"message":"Service Unavailable"}`) {
			t.Errorf("%s: %d %s", name, first.Code, first.Body)
		}
		adaptertest.WantProblem(t, pay(t, e, "/"+name, "k", ""), http.StatusConflict, "outcome_unknown")
		if runs != 1 {
			t.Errorf("%s: %d runs", name, runs)
		}
	}
}

// A middleware outside that has set a status which the handler does not change gets it.
func TestStatusOfAMiddlewareOutside(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			response, _ := echo.UnwrapResponse(c.Response())
			response.Status = http.StatusAccepted
			return next(c)
		}
	})
	e.POST("/", func(c *echo.Context) error { _, err := c.Response().Write([]byte("paid")); return err },
		echov5lock.Idempotent(locktest.New(t).Locker, byKey))
	for range 2 {
		if w := pay(t, e, "/", "k", ""); w.Code != http.StatusAccepted || w.Body.String() != "paid" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

// If the deadline of a request passes while it waits inside of Idempotent, its refusal frees the key.
func TestDeadlineInsideIdempotent(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	release := locks.Hold(theKey)
	e := newEcho()
	e.POST("/", func(c *echo.Context) error { return c.String(http.StatusCreated, "paid") }, echov5lock.Idempotent(locks.Locker, byKey, core.WithClientCancel(true)),
		echov5lock.Middleware(locks.Locker, literal, core.WithWait(time.Minute)))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r := newRequest(t, http.MethodPost, "/", "").WithContext(ctx)
	r.Header.Set("Idempotency-Key", "k")
	adaptertest.WantProblem(t, serve(e, r), http.StatusServiceUnavailable, "deadline")
	release()
	if w := pay(t, e, "/", "k", ""); w.Code != http.StatusCreated {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A middleware outside that tries a refused request again gets its answer, without a trace of the
// refusal.
func TestRefusedThenReplayed(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			key := c.Request().Header.Get("Idempotency-Key")
			c.Request().Header.Set("Idempotency-Key", "a,b")
			if err := next(c); !errors.Is(err, core.ErrInvalidKey) {
				t.Errorf("the first try: %v", err)
			}
			c.Request().Header.Set("Idempotency-Key", key)
			return next(c)
		}
	})
	e.POST("/", func(c *echo.Context) error {
		c.Response().Header().Set("Retry-After", "7") // which the refusal would remove
		return c.String(http.StatusPaymentRequired, "no funds")
	}, echov5lock.Idempotent(locktest.New(t).Locker, byKey, core.WithReplayedHeaders("Retry-After")))
	for range 2 {
		if w := pay(t, e, "/", "k", ""); w.Code != http.StatusPaymentRequired || w.Body.String() != "no funds" || w.Header().Get("Retry-After") != "7" {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
	}
}

package echolock_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// byKey is a key that the client chooses.
var byKey = echolock.IdempotencyKey()

// pay sends a payment with the key to an application.
func pay(t *testing.T, e *echo.Echo, path, key, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := newRequest(t, http.MethodPost, path, body)
	r.Header.Set("Idempotency-Key", key)
	return serve(e, r)
}

// An error that a handler returns is rendered inside Idempotent. If it is not
// rendered, nothing is stored.
func TestReturnedErrors(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for name, test := range map[string]struct {
		handler  echo.HTTPErrorHandler
		decision core.Ending
		status   int
		runs     int
		code     string // of the copy
	}{
		"rendered":           {nil, core.EndUndecided, 402, 1, ""},
		"not rendered":       {func(error, echo.Context) {}, core.EndUndecided, 200, 2, ""},
		"not rendered, kept": {func(error, echo.Context) {}, core.EndCommit, 200, 1, "completed_unreplayable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEcho()
			e.HTTPErrorHandler = func(err error, c echo.Context) {
				if test.handler == nil || errors.Is(err, core.ErrUnreplayable) {
					e.DefaultHTTPErrorHandler(err, c)
				}
			}
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					err := next(c)
					if err != nil && !errors.Is(err, core.ErrUnreplayable) {
						t.Errorf("those outside see %v", err)
					}
					return err
				}
			})
			runs := 0
			e.POST("/", func(c echo.Context) error {
				runs++
				attempt, _ := core.AttemptFromContext(c.Request().Context())
				attempt.Decide(test.decision)
				return echo.NewHTTPError(http.StatusPaymentRequired, "no funds")
			}, echolock.Idempotent(locks, core.Join(echolock.Literal(name), byKey)))
			if w := pay(t, e, "/", "error", ""); w.Code != test.status {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			w := pay(t, e, "/", "error", "")
			switch {
			case runs != test.runs:
				t.Errorf("%d runs", runs)
			case test.code != "":
				adaptertest.WantProblem(t, w, http.StatusConflict, test.code)
			case w.Code != test.status || test.runs == 1 && !strings.Contains(w.Body.String(), "no funds"):
				t.Errorf("the copy: %d %s", w.Code, w.Body)
			}
		})
	}
}

// An error without a status is rendered as 500, and leaves the outcome unknown. WithUnknown
// gets the error of the handler, also if it is not rendered.
func TestUnknownErrors(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	errFunds := errors.New("no funds")
	known := core.WithUnknown(func(f core.Failure) bool { return !errors.Is(f.Err, errFunds) })
	for name, test := range map[string]struct {
		opts    []core.Option
		handler echo.HTTPErrorHandler
		err     error
		runs    int
	}{
		"by default":                {nil, nil, errFunds, 1},
		"WithFreeOnFailure":         {[]core.Option{core.WithFreeOnFailure()}, nil, errFunds, 2},
		"a known error":             {[]core.Option{known}, nil, fmt.Errorf("pay: %w", errFunds), 2},
		"another error":             {[]core.Option{known}, nil, errors.New("a timeout"), 1},
		"not rendered":              {nil, func(error, echo.Context) {}, errFunds, 1},
		"not rendered, known":       {[]core.Option{known}, func(error, echo.Context) {}, errFunds, 2},
		"not rendered, with a 503":  {nil, func(error, echo.Context) {}, echo.ErrServiceUnavailable, 2},
		"a 503":                     {nil, nil, echo.ErrServiceUnavailable, 2},
		"a 502 of a service behind": {nil, nil, echo.ErrBadGateway, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEcho()
			if test.handler != nil {
				e.HTTPErrorHandler = test.handler
			}
			runs := 0
			e.POST("/", func(echo.Context) error {
				runs++
				return test.err
			}, echolock.Idempotent(locks, core.Join(echolock.Literal(name), byKey), test.opts...))
			pay(t, e, "/", "error", "")
			if w := pay(t, e, "/", "error", ""); runs != test.runs {
				t.Errorf("%d runs, want %d; the copy: %d %s", runs, test.runs, w.Code, w.Body)
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
		return func(c echo.Context) error {
			c.Response().Before(func() {
				before++
				c.Response().Header().Set("X-Before", fmt.Sprint(before))
			})
			c.Response().After(func() { after++ })
			return next(c)
		}
	})
	e.POST("/", func(c echo.Context) error { return c.String(http.StatusCreated, "paid") },
		echolock.Idempotent(locktest.New(t).Locker, byKey))
	for i := 1; i <= 3; i++ {
		w := pay(t, e, "/", "hooks", "")
		if before != i || after != i || w.Header().Get("X-Before") != fmt.Sprint(i) || w.Body.String() != "paid" {
			t.Errorf("%d: before %d, after %d; %v %s", i, before, after, w.Header(), w.Body)
		}
	}
}

// A recovery outside answers after a panic, with the hooks, and nothing of what
// the handler had written.
func TestRecoverAfterIdempotent(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.Logger.SetOutput(io.Discard)
	e.Use(middleware.Recover())
	e.POST("/", func(c echo.Context) error {
		_ = c.String(http.StatusCreated, "paid")
		panic("crash")
	}, echolock.Idempotent(locktest.New(t).Locker, byKey))
	if w := pay(t, e, "/", "panic", ""); w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "paid") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// BodyLimit in front is met while the body is read for its fingerprint.
func TestBodyLimitBeforeIdempotent(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.POST("/", ok, middleware.BodyLimit("5B"), echolock.Idempotent(locktest.New(t).Locker, byKey))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", io.MultiReader(strings.NewReader("long body")))
	r.Header.Set("Idempotency-Key", "limit")
	adaptertest.WantProblem(t, serve(e, r), http.StatusRequestEntityTooLarge, "body_too_large")
}

// A middleware outside that tries a refused request again gets its answer,
// without a trace of the refusal.
func TestRefusedThenReplayed(t *testing.T) {
	t.Parallel()
	e := newEcho()
	locks := locktest.New(t).Locker
	key := "refused"
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if c.QueryParam("again") == "" {
				return next(c)
			}
			c.Request().Header.Set("Idempotency-Key", "a,b")
			if err := next(c); err == nil {
				t.Error("not refused")
			}
			c.Request().Header.Set("Idempotency-Key", key)
			return next(c)
		}
	})
	e.POST("/", func(c echo.Context) error { return c.String(http.StatusPaymentRequired, "no funds") },
		echolock.Idempotent(locks, byKey, core.WithoutFingerprint()))
	first := pay(t, e, "/?again=1", key, "")
	if got := first.Header()["Cache-Control"]; first.Body.String() != "no funds" || got != nil {
		t.Errorf("%d %s, Cache-Control %q", first.Code, first.Body, got)
	}
	again := pay(t, e, "/?again=1", key, "")
	if again.Code != http.StatusPaymentRequired || again.Body.String() != "no funds" || again.Header().Get("Idempotent-Replayed") == "" {
		t.Errorf("%d %v %s", again.Code, again.Header(), again.Body)
	}
}

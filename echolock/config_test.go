package echolock_test

import (
	"errors"
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

func TestToMiddlewareErrors(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for name, test := range map[string]struct {
		config echolock.Config
		want   string
	}{
		"nothing":      {echolock.Config{}, "Locker"},
		"no locker":    {echolock.Config{Key: literal}, "Locker"},
		"no key":       {echolock.Config{Locker: locks}, "Key"},
		"nil in Also":  {echolock.Config{Locker: locks, Key: literal, Also: []echolock.KeyFunc{nil}}, "Also"},
		"bad setting":  {echolock.Config{Locker: locks, Key: literal, Options: []core.Option{core.WithTTL(1)}}, "WithTTL"},
		"root setting": {echolock.Config{Locker: locks, Key: literal, Options: []core.Option{core.WithPrefix("x")}}, "WithPrefix"},
		"nil option":   {echolock.Config{Locker: locks, Key: literal, Options: []core.Option{nil}}, "option is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			middleware, err := test.config.ToMiddleware()
			if middleware != nil || err == nil || !strings.HasPrefix(err.Error(), "reqlock: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v does not name %s", err, test.want)
			}
			defer func() {
				if caught, _ := recover().(error); caught == nil || caught.Error() != err.Error() {
					t.Errorf("MiddlewareWithConfig panics with %v, not %v", caught, err)
				}
			}()
			echolock.MiddlewareWithConfig(test.config)
		})
	}
}

// brokenOption panics as a bug would, and not as With does.
type brokenOption struct{ core.Option }

// ToMiddleware does not turn a runtime error into an invalid setting.
func TestToMiddlewareHidesNoBug(t *testing.T) {
	t.Parallel()
	config := echolock.Config{Locker: locktest.New(t).Locker, Key: literal, Options: []core.Option{brokenOption{}}}
	defer func() {
		if caught := recover(); caught == nil {
			t.Error("the nil pointer in an option was made an error")
		}
	}()
	_, _ = config.ToMiddleware()
}

func TestRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"nil locker":        {func() { echolock.Middleware(nil, literal) }, "Locker"},
		"nil key":           {func() { echolock.Middleware[string](locks, nil) }, "Key"},
		"nil option":        {func() { echolock.Middleware(locks, literal, nil) }, "option is nil"},
		"foreign option":    {func() { echolock.Middleware(locks, literal, adaptertest.ForeignOption{}) }, adaptertest.ForeignOptionText},
		"bad setting":       {func() { echolock.Middleware(locks, literal, core.WithTTL(1)) }, "WithTTL"},
		"root setting":      {func() { echolock.Middleware(locks, literal, core.WithPrefix("x")) }, "WithPrefix"},
		"Also nothing":      {func() { echolock.Also([]echolock.KeyFunc{}...) }, "Also"},
		"Also nil":          {func() { echolock.Also(literal, nil) }, "Also"},
		"nil error handler": {func() { echolock.WithErrorHandler(nil) }, "WithErrorHandler"},
		"MaxBody":           {func() { echolock.MaxBody(0) }, "MaxBody"},
		"BodyOption":        {func() { echolock.JSONField("id", echolock.BodyOption{}) }, "limit"},
		"Param":             {func() { echolock.Param("") }, "Param"},
		"Param colon":       {func() { echolock.Param(":id") }, `Param(":id"): write the name alone, as in Param("id")`},
		"Get":               {func() { echolock.Get("") }, "Get"},
		"GetAs":             {func() { echolock.GetAs("", func(string) string { return "" }) }, "GetAs"},
		"GetAs nil":         {func() { echolock.GetAs[string]("user", nil) }, "GetAs"},
		"Literal":           {func() { echolock.Literal("") }, "Literal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.WantPanic(t, test.register, test.want)
		})
	}
}

// A Skipper and ErrSkip both run requests with no lock, past one that is held.
func TestSkippedRequestRunsWithoutLock(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold(theKey)()
	reads := func(c echo.Context) bool { return c.Request().Method == http.MethodGet }
	for name, lock := range map[string]echo.MiddlewareFunc{
		"Skipper": echolock.MiddlewareWithConfig(echolock.Config{Skipper: reads, Locker: locks.Locker, Key: literal}),
		"ErrSkip": echolock.Middleware(locks.Locker, core.When(func(c echo.Context) bool { return !reads(c) }, literal)),
	} {
		e := newEcho()
		e.Any("/", func(c echo.Context) error {
			if _, locked := echolock.FromContext(c); locked {
				t.Error("there is a lease")
			}
			return ok(c)
		}, lock)
		if w := serve(e, newRequest(t, http.MethodGet, "/", "")); w.Code != http.StatusNoContent {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		adaptertest.WantProblem(t, serve(e, newRequest(t, http.MethodPost, "/", "")), http.StatusConflict, "busy")
	}
}

// Config has a field for each option.
func TestConfig(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	mine := errors.New("mine")
	config := echolock.Config{
		Locker:       locks.Locker,
		Key:          echolock.QueryParam("from"),
		Also:         []echolock.KeyFunc{echolock.QueryParam("to")},
		Options:      []core.Option{core.WithRetryAfter(time.Minute)},
		ErrorHandler: func(_ echo.Context, err error) error { return errors.Join(mine, err) },
	}
	e := newEcho()
	var seen error
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		seen = err
		_ = c.NoContent(http.StatusTeapot)
	}
	e.GET("/", ok, echolock.MiddlewareWithConfig(config))
	config.Also[0] = nil // the middleware has its own
	defer locks.Hold("b")()
	if w := serve(e, newRequest(t, http.MethodGet, "/?from=a&to=c", "")); w.Code != http.StatusNoContent {
		t.Errorf("both are free: %d %s", w.Code, w.Body)
	}
	w := serve(e, newRequest(t, http.MethodGet, "/?from=a&to=b", ""))
	var detail *core.Error
	if w.Code != http.StatusTeapot || !errors.Is(seen, mine) || !errors.As(seen, &detail) || detail.RetryAfter != time.Minute {
		t.Errorf("one is held: %d, %v", w.Code, seen)
	}
}

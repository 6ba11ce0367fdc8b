package echolock_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// Registrations in all forms compile, and refuse requests without a key. Exception:
// requests for which the key is optional run.
func TestIdempotentRegistrations(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	auth := middleware.BasicAuth(func(string, string, echo.Context) (bool, error) { return true, nil })
	scoped := core.Join(echolock.Get("user_id"), echolock.IdempotencyKey())
	e := newEcho()
	e.POST("/1", ok, auth, echolock.Idempotent(locks, scoped))
	e.POST("/2", ok, auth, echolock.Idempotent(locks, scoped,
		core.WithWait(2*time.Second),
		core.WithRetention(time.Hour),
		core.WithRerunUnknown(true),
		core.WithMaxAnswer(64<<10),
		echolock.WithErrorHandler(echolock.WriteError),
	))
	e.Any("/3", ok, echolock.Idempotent(locks, scoped,
		echolock.WithOptionalKey(),
		echolock.WithMethods(http.MethodPut, "delete"),
		echolock.WithReplayedHeaders("X-Payment"),
	))
	e.POST("/4", ok, echolock.Idempotent(locks, echolock.Header("X-Request-Key"),
		echolock.WithOptionalKey("X-Request-Key"),
		echolock.WithMaxBody(64<<10),
		echolock.WithStored(func(status int) bool { return status < 300 }),
	))
	e.POST("/5", ok, echolock.Idempotent(locks, echolock.JSONField("id"), echolock.WithoutFingerprint()))
	e.POST("/6", ok, echolock.Idempotent(locks, scoped, echolock.WithFingerprint(
		func(c echo.Context) ([]byte, error) { return []byte(c.FormValue("amount")), nil },
	)), echolock.Middleware(locks, core.Named("user", echolock.Get("user"))))
	payments := e.Group("/payments", auth)
	payments.Use(echolock.IdempotentWithConfig(echolock.IdempotentConfig{
		Skipper:         func(c echo.Context) bool { return c.Path() == "/payments/hooks" },
		Locker:          locks,
		Key:             scoped,
		Options:         []core.Option{core.WithWait(time.Second)},
		ErrorHandler:    echolock.WriteError,
		Methods:         []string{http.MethodPost},
		OptionalKey:     []string{"Idempotency-Key"},
		Fingerprint:     func(echo.Context) ([]byte, error) { return nil, nil },
		MaxBody:         64 << 10,
		Stored:          func(status int) bool { return status < 300 },
		ReplayedHeaders: []string{"X-Payment"},
	}))
	payments.POST("/optional", ok)
	const refused, runs = http.StatusBadRequest, http.StatusNoContent
	for request, want := range map[string]int{
		"POST /1": refused, "POST /2": refused, "PUT /3": runs, "POST /4": runs, "POST /5": refused, "POST /6": refused,
		"POST /payments/optional": runs,
	} {
		method, path, _ := strings.Cut(request, " ")
		r := newRequest(t, method, path, "")
		r.SetBasicAuth("ada", "password")
		if w := serve(e, r); w.Code != want {
			t.Errorf("%s: %d %s", request, w.Code, w.Body)
		}
	}
}

func TestIdempotentRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	idempotent := func(opts ...echolock.Option) func() {
		return func() { echolock.Idempotent(locks, byKey, opts...) }
	}
	config := func(config echolock.IdempotentConfig) func() {
		return func() {
			if _, err := config.ToMiddleware(); err == nil {
				t.Error("no error")
			}
			echolock.IdempotentWithConfig(config)
		}
	}
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"nil locker":       {func() { echolock.Idempotent(nil, byKey) }, "Locker"},
		"nil key":          {func() { echolock.Idempotent[string](locks, nil) }, "Key"},
		"nil option":       {idempotent(nil), "option is nil"},
		"bad setting":      {idempotent(core.WithRetention(1)), "WithRetention"},
		"Also":             {idempotent(echolock.Also(literal)), "put a Middleware behind Idempotent"},
		"FailOpen":         {idempotent(core.WithFailOpen(true)), "without Redis"},
		"a safe method":    {idempotent(echolock.WithMethods("put", "get")), "GET"},
		"no method":        {func() { echolock.WithMethods() }, "WithMethods"},
		"fingerprint":      {func() { echolock.WithFingerprint(nil) }, "WithFingerprint"},
		"body limit":       {func() { echolock.WithMaxBody(0) }, "WithMaxBody"},
		"stored":           {func() { echolock.WithStored(nil) }, "WithStored"},
		"uncertain":        {func() { echolock.WithUnknown(nil) }, "WithUnknown"},
		"free, Middleware": {func() { echolock.Middleware(locks, byKey, echolock.FreeOnFailure()) }, "FreeOnFailure is an option of Idempotent"},
		"a cookie":         {idempotent(echolock.WithReplayedHeaders("Set-Cookie")), "Set-Cookie"},
		"no header":        {func() { echolock.WithReplayedHeaders() }, "WithReplayedHeaders"},
		"of Idempotent": {func() {
			echolock.Middleware(locks, byKey, echolock.WithMaxBody(1))
		}, "WithMaxBody is an option of Idempotent"},

		"config, no locker":    {config(echolock.IdempotentConfig{Key: byKey}), "Locker"},
		"config, no key":       {config(echolock.IdempotentConfig{Locker: locks}), "Key"},
		"config, bad setting":  {config(echolock.IdempotentConfig{Locker: locks, Key: byKey, Options: []core.Option{nil}}), "option is nil"},
		"config, FailOpen":     {config(echolock.IdempotentConfig{Locker: locks.With(core.WithFailOpen(true)), Key: byKey}), "without Redis"},
		"config, no method":    {config(echolock.IdempotentConfig{Locker: locks, Key: byKey, Methods: []string{}}), "method"},
		"config, a body limit": {config(echolock.IdempotentConfig{Locker: locks, Key: byKey, MaxBody: -1}), "below 1"},
		"config, no header":    {config(echolock.IdempotentConfig{Locker: locks, Key: byKey, OptionalKey: []string{""}}), "optional key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.WantPanic(t, test.register, test.want)
		})
	}
}

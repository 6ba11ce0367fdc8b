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
		core.WithOptionalKey(),
		core.WithMethods(http.MethodPut, "delete"),
		core.WithReplayedHeaders("X-Payment"),
	))
	e.POST("/4", ok, echolock.Idempotent(locks, echolock.Header("X-Request-Key"),
		core.WithOptionalKey("X-Request-Key"),
		core.WithMaxBody(64<<10),
		core.WithStored(func(status int) bool { return status < 300 }),
	))
	e.POST("/5", ok, echolock.Idempotent(locks, echolock.JSONField("id"), core.WithoutFingerprint()))
	e.POST("/6", ok, echolock.Idempotent(locks, scoped, core.WithFingerprint(
		func(c echo.Context) ([]byte, error) { return []byte(c.FormValue("amount")), nil },
	)), echolock.Middleware(locks, echolock.Get("user").Named("user")))
	payments := e.Group("/payments", auth)
	notHooks := func(c echo.Context) bool { return c.Path() != "/payments/hooks" }
	payments.Use(echolock.Idempotent(locks, scoped.When(notHooks),
		core.WithWait(time.Second),
		core.WithMethods(http.MethodPost),
		core.WithOptionalKey("Idempotency-Key"),
	))
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
	idempotent := func(opts ...core.Option) func() {
		return func() { echolock.Idempotent(locks, byKey, opts...) }
	}
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"nil locker":    {func() { echolock.Idempotent(nil, byKey) }, "locker"},
		"zero Key":      {func() { echolock.Idempotent(locks, echolock.Key{}) }, "needs a key"},
		"nil option":    {idempotent(nil), "option is nil"},
		"bad setting":   {idempotent(core.WithRetention(1)), "WithRetention"},
		"All":           {func() { echolock.Idempotent(locks, core.All(byKey, literal)) }, "Idempotent has one key"},
		"FailOpen":      {idempotent(core.WithFailOpen(true)), "WithFailOpen"},
		"a cookie":      {idempotent(core.WithReplayedHeaders("Set-Cookie")), "Set-Cookie"},
		"of Idempotent": {func() { echolock.Middleware(locks, byKey, core.WithStored(func(int) bool { return true })) }, "WithStored has no effect on Middleware"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.WantPanic(t, test.register, test.want)
		})
	}
}

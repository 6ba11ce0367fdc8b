package echolock_test

import (
	"errors"
	"net/http"
	"strconv"
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

// A User is the user that the application's authentication puts into the context.
type User struct {
	ID     int64
	Tenant string
	Admin  bool
}

func (u *User) String() string { return strconv.FormatInt(u.ID, 10) }

// An AccountID is a string with a meaning.
type AccountID string

func tenantOf(u *User) string { return u.Tenant }

func userOf(c echo.Context) *User {
	user, _ := c.Get("user").(*User)
	return user
}

func isWrite(c echo.Context) bool {
	method := c.Request().Method
	return method != http.MethodGet && method != http.MethodHead
}

// Registrations in all forms compile, and do not panic.
func TestRegistrations(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	secret := []byte("pepper")
	auth := middleware.BasicAuth(func(string, string, echo.Context) (bool, error) { return true, nil })
	e := newEcho()
	e.Use(middleware.Recover(), middleware.CORS())

	// One key.
	e.POST("/a1/:id", ok, echolock.Middleware(locks, echolock.Param("id")))
	e.POST("/a2", ok, echolock.Middleware(locks, echolock.Header("X-Account-ID")))
	e.POST("/a3", ok, echolock.Middleware(locks, echolock.QueryParam("account")))
	e.POST("/a4", ok, echolock.Middleware(locks, echolock.Cookie("session")))
	e.POST("/a5", ok, echolock.Middleware(locks, echolock.Form("account")))
	e.POST("/a6", ok, echolock.Middleware(locks, echolock.JSONField("account.id"), core.WithMaxBody(64<<10)))
	e.POST("/a7", ok, echolock.Middleware(locks, echolock.RealIP()))
	e.POST("/a8", ok, auth, echolock.Middleware(locks, echolock.Get("user")))
	e.POST("/a9", ok, auth, echolock.Middleware(locks, echolock.GetAs("user", (*User).String)))
	e.POST("/a10", ok, auth, echolock.Middleware(locks, echolock.GetAs("user", tenantOf)))
	e.POST("/a11", ok, auth, echolock.Middleware(locks, echolock.GetAs("account", func(id AccountID) string { return string(id) })))
	e.POST("/a12", ok, echolock.Middleware(locks, echolock.Literal("nightly-report")))
	e.POST("/a13", ok, auth, echolock.Middleware(locks, core.Join(echolock.Get("user"), echolock.IdempotencyKey())))

	// With settings.
	e.PUT("/b1/:id", ok, echolock.Middleware(locks, echolock.Param("id"), core.WithWait(2*time.Second)))
	e.PUT("/b2/:id", ok, echolock.Middleware(locks.With(core.WithTTL(time.Minute)), echolock.Param("id")))
	e.PUT("/b3/:from/:to", ok, echolock.Middleware(locks, core.All(echolock.Param("from"), echolock.Param("to")), core.WithMaxHold(time.Minute)))
	e.PUT("/b4/:id", ok, echolock.Middleware(locks, echolock.Param("id"), echolock.WithErrorHandler(func(c echo.Context, err error) error {
		if errors.Is(err, core.ErrBusy) {
			return c.JSON(http.StatusLocked, echo.Map{"error": "try again"})
		}
		return echolock.WriteError(c, err)
	})))

	// Composed.
	e.PUT("/c1/:id", ok, echolock.Middleware(locks, echolock.Param("id").Named("account")))
	e.PUT("/c2/:id", ok, echolock.Middleware(locks, core.Join(echolock.Header("X-Tenant"), echolock.Param("id"))))
	e.PUT("/c3", ok, echolock.Middleware(locks, core.First(echolock.Header("X-Account"), echolock.QueryParam("account"))))
	e.Any("/c4/:id", ok, echolock.Middleware(locks, echolock.Param("id").When(isWrite)))
	e.PUT("/c5", ok, echolock.Middleware(locks, echolock.Form("email").Hashed()))
	e.PUT("/c6", ok, echolock.Middleware(locks, echolock.JSONField("email").HMAC(secret)))
	e.PUT("/c7/:id", ok, echolock.Middleware(locks, core.Join(echolock.GetAs("user", tenantOf), echolock.Param("id")).Named("order")))

	// Functions of the application.
	e.PUT("/d1", ok, echolock.Middleware(locks, core.Getter(func(c echo.Context) string { return userOf(c).Tenant })))
	e.PUT("/d2", ok, echolock.Middleware(locks, core.KeyOf(func(c echo.Context) (string, error) {
		user := userOf(c)
		if user == nil {
			return "", echo.ErrUnauthorized
		}
		if user.Admin {
			return "", core.ErrSkip
		}
		return user.String(), nil
	})))
	e.PUT("/d3/:email", ok, echolock.Middleware(locks, core.KeyOf(func(c echo.Context) (string, error) {
		return strings.ToLower(c.Param("email")), nil
	}).Named("mail")))
	e.PUT("/d4/:id", ok, echolock.Middleware(locks, core.Join(core.KeyOf(func(c echo.Context) (string, error) { return c.Param("id"), nil }), echolock.Header("X-Tenant")).When(func(c echo.Context) bool { return !userOf(c).Admin })))

	// Groups, and the whole application.
	me := e.Group("/me", auth, echolock.Middleware(locks, echolock.Get("user").Named("user")))
	me.POST("/orders", ok)
	accounts := e.Group("/accounts")
	accounts.Use(auth)
	accounts.Use(echolock.Middleware(locks, echolock.Param("id").Named("account").When(isWrite), core.WithWait(time.Second)))
	e.Use(echolock.Middleware(locks, core.All(echolock.Get("user"), echolock.Literal("all")), echolock.WithErrorHandler(echolock.WriteError)))
}

func TestRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"nil locker":        {func() { echolock.Middleware(nil, literal) }, "locker"},
		"zero Key":          {func() { echolock.Middleware(locks, echolock.Key{}) }, "needs a key"},
		"nil option":        {func() { echolock.Middleware(locks, literal, nil) }, "option is nil"},
		"foreign option":    {func() { echolock.Middleware(locks, literal, adaptertest.ForeignOption()) }, adaptertest.ForeignOptionText},
		"bad setting":       {func() { echolock.Middleware(locks, literal, core.WithTTL(1)) }, "WithTTL"},
		"root setting":      {func() { echolock.Middleware(locks, literal, core.WithPrefix("x")) }, "WithPrefix"},
		"nil error handler": {func() { echolock.WithErrorHandler(nil) }, "WithErrorHandler"},
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

// The caller of a lease of a middleware is the code that made the middleware.
func TestCallerIsTheCodeThatMadeTheMiddleware(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*core.Locker) http.Handler{
		"Middleware": func(locks *core.Locker) http.Handler { return closingEcho(echolock.Middleware(locks, literal)) },
		"Idempotent": func(locks *core.Locker) http.Handler { return closingEcho(echolock.Idempotent(locks, literal)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithCaller(true))
			adaptertest.CheckCaller(t, locks.Locker, build(locks.Locker), ".TestCallerIsTheCodeThatMadeTheMiddleware.func")
		})
	}
}

// closingEcho returns an application that closes the Locker during the request.
func closingEcho(middleware echo.MiddlewareFunc) http.Handler {
	e := echo.New()
	e.POST("/", func(c echo.Context) error {
		adaptertest.CloseLocker(c.Request())
		return nil
	}, middleware)
	return e
}

package main

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echolock"
)

// routes returns the routes of the bank: authentication first, then the lock, then
// the handler.
func routes(locks *core.Locker, b *bank) *echo.Echo {
	e := echo.New()
	e.Use(middleware.Recover(), middleware.BodyLimit("64K"))
	auth := middleware.BasicAuth(authenticate)

	// Two withdrawals at the same time are a mistake: the second one is refused with
	// 409.
	e.POST("/accounts/:id/withdrawals", b.withdraw, auth, mayUse,
		echolock.Middleware(locks, echolock.Param("id").Named("account")))

	// A transfer waits for other transfers of the same accounts, and excludes
	// withdrawals from both. With an Idempotency-Key it is made once, even if it is
	// sent several times.
	once := echolock.Idempotent(locks, core.Join(echolock.Get("user"), echolock.IdempotencyKey()),
		core.WithOptionalKey(), core.WithWait(5*time.Second))
	e.POST("/transfers", b.transfer, auth, once, echolock.Middleware(locks, core.All(echolock.Get("user").Named("account"), echolock.Form("to").Named("account")), core.WithWait(5*time.Second)))

	// The requests of one user run one at a time, except reads.
	me := e.Group("/me", auth,
		echolock.Middleware(locks, echolock.Get("user").Named("user").When(isNotGet), core.WithWait(2*time.Second)))
	me.GET("/balance", b.balance)
	me.PUT("/nickname", b.rename)
	return e
}

// isNotGet reports whether a request may change something.
func isNotGet(c echo.Context) bool { return c.Request().Method != http.MethodGet }

// authenticate knows two users, and stores the user for the locks and the handlers.
func authenticate(user, password string, c echo.Context) (bool, error) {
	c.Set("user", user)
	return (user == "ada" || user == "bob") && password == "secret", nil
}

// mayUse refuses requests for the account of another user, before the lock.
func mayUse(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Param("id") != userOf(c) {
			return echo.NewHTTPError(http.StatusForbidden, "not your account")
		}
		return next(c)
	}
}

// userOf returns the authenticated user.
func userOf(c echo.Context) string { return c.Get("user").(string) }

package main

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echov5lock"
)

// An echov5Service is the service of a bank on Echo v5.
type echov5Service struct{ bank *bank }

// newEchov5Service returns the routes of a bank, with their locks.
//
// A lock comes after every middleware that may refuse the request: otherwise a client without rights
// could block an account. A copy of a payment needs no lock, so Idempotent comes before the locks.
func newEchov5Service(bank *bank, locks *core.Locker) http.Handler {
	s := echov5Service{bank}
	wait := core.WithWait(10 * time.Second)

	// Locks with the same name and key exclude each other on all routes.
	payer := echov5lock.Param("id").Named("account")
	both := core.All(payer, echov5lock.JSONField("to").Named("account"))
	self := echov5lock.Get("user").Named("user")
	jobs := echov5lock.Literal("batch").Named("jobs")

	alone := echov5lock.Middleware(locks, both)        // a second request is refused
	inTurn := echov5lock.Middleware(locks, both, wait) // a second request waits
	reads := echov5lock.Middleware(locks, payer.Shared(), wait)
	batch := echov5lock.Middleware(locks, jobs.Permits(3), wait)
	user := echov5lock.Middleware(locks, self, wait)
	once := echov5lock.Idempotent(locks, core.Join(self, echov5lock.IdempotencyKey()), wait)
	paidOut := echov5lock.Middleware(locks, payer, core.WithFencing(true)) // its lease can be handed over

	e := echo.New()
	e.Use(middleware.Recover(), middleware.BodyLimit(64<<10))
	account := e.Group("/accounts/:id", s.authenticate)
	account.GET("/balance", s.showAccount, reads)
	// A person sends a transfer. A second click is refused.
	account.POST("/transfer", s.transfer, alone)
	// A batch job sends settlements. Three run at once, and wait for their accounts.
	account.POST("/settle", s.transfer, batch, inTurn)
	// A program sends a payment again until it has an answer. A copy gets the first answer.
	account.POST("/payments", s.transfer, once, alone)
	// A worker makes a payout, under the same lock. The client has a 202 before.
	account.POST("/payouts", s.payOut, once, paidOut)
	account.POST("/orders", s.placeOrder, user)
	return e
}

// authenticate stores the user of the request for the locks and the handlers, and refuses requests for
// the account of another user. In this example the bearer token and the account are the user's name.
func (s echov5Service) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		user, ok := strings.CutPrefix(c.Request().Header.Get("Authorization"), "Bearer ")
		if !ok {
			return echo.NewHTTPError(http.StatusUnauthorized, "the user is unknown")
		}
		if c.Param("id") != user {
			return echo.NewHTTPError(http.StatusForbidden, "the account is not yours")
		}
		c.Set("user", user)
		return next(c)
	}
}

// transfer runs under the locks of both accounts. The context of the request ends if one of the
// locks is lost, so the handler passes it on.
func (s echov5Service) transfer(c *echo.Context) error {
	var body transfer
	if err := c.Echo().JSONSerializer.Deserialize(c, &body); err != nil {
		return s.reply(c, nil, errInvalid)
	}
	made, err := s.bank.transfer(c.Request().Context(), c.Param("id"), body)
	return s.reply(c, made, err)
}

// showAccount shares the lock of the account with other readers.
func (s echov5Service) showAccount(c *echo.Context) error {
	cents, err := s.bank.show(c.Request().Context(), c.Param("id"))
	return s.reply(c, map[string]any{"cents": cents}, err)
}

// payOut runs under the lock of the account, and hands it over.
func (s echov5Service) payOut(c *echo.Context) error {
	var body transfer
	if err := c.Echo().JSONSerializer.Deserialize(c, &body); err != nil {
		return s.reply(c, nil, errInvalid)
	}
	location, err := s.bank.payOut(c.Request().Context(), c.Param("id"), body.Cents)
	if err != nil {
		return s.reply(c, nil, err)
	}
	c.Response().Header().Set("Location", location)
	return c.NoContent(http.StatusAccepted)
}

// placeOrder runs under the lock of the user.
func (s echov5Service) placeOrder(c *echo.Context) error {
	user, _ := c.Get("user").(string)
	number, err := s.bank.order(c.Request().Context(), user, c.QueryParam("item"))
	return s.reply(c, map[string]any{"number": number}, err)
}

// reply answers with JSON, or returns the HTTP error for an error of the bank.
func (s echov5Service) reply(c *echo.Context, body any, err error) error {
	if err != nil {
		r := refusalOf(err)
		return echo.NewHTTPError(r.http, r.text)
	}
	return c.JSON(http.StatusOK, body)
}

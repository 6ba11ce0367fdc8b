package main

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echolock"
)

// An echoService is the service of the bank on Echo.
type echoService struct {
	bank *bank

	account echo.MiddlewareFunc // both accounts of a transfer; the second request is refused
	inTurn  echo.MiddlewareFunc // the same locks; the second request waits
	user    echo.MiddlewareFunc // everything that belongs to one user; the second request waits
	reads   echo.MiddlewareFunc // one account, beside other readers
	batch   echo.MiddlewareFunc // the batch jobs of the bank; three run at once, and the others wait
	once    echo.MiddlewareFunc // one payment of a user; a copy gets the first answer
}

// newEchoService returns the service of a bank, with its locks.
func newEchoService(bank *bank, locks *core.Locker) *echoService {
	payer := core.Named("account", echolock.Param("id"))
	payee := echolock.Also(core.Named("account", echolock.JSONField("to", echolock.MaxBody(maxBody))))
	self := core.Named("user", echolock.GetAs("user", user.Subject))
	batch := core.Named("jobs", echolock.Literal("batch"))

	return &echoService{
		bank:    bank,
		account: echolock.Middleware(locks, payer, payee),
		inTurn:  echolock.Middleware(locks, payer, payee, core.WithWait(10*time.Second)),
		user:    echolock.Middleware(locks, self, core.WithWait(10*time.Second)),
		reads:   echolock.Middleware(locks, core.Shared(payer), core.WithWait(10*time.Second)),
		batch:   echolock.Middleware(locks, core.Permits(3, batch), core.WithWait(10*time.Second)),
		once:    echolock.Idempotent(locks, core.Join(self, echolock.IdempotencyKey()), core.WithWait(10*time.Second)),
	}
}

// handler returns the routes: recovery and authentication for all routes, and then
// owner check, lock and handler for each.
func (s *echoService) handler() http.Handler {
	e := echo.New()
	e.Use(middleware.Recover(), s.authenticate)
	account := e.Group("/accounts/:id", s.checkOwner)
	account.GET("", s.showAccount, s.reads)
	account.POST("/transfer", s.transfer, s.account)
	account.POST("/settle", s.transfer, s.batch, s.inTurn)
	account.POST("/payments", s.transfer, s.once, s.account)
	e.POST("/me/orders", s.placeOrder, s.user)
	return e
}

// authenticate stores the user of the request, for the handlers and the locks.
func (s *echoService) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		u, ok := bearer(c.Request().Header.Get("Authorization"))
		if !ok {
			c.Response().Header().Set("WWW-Authenticate", "Bearer")
			return echo.NewHTTPError(http.StatusUnauthorized, "the user is unknown")
		}
		c.Set("user", u)
		return next(c)
	}
}

// checkOwner refuses requests for the account of another user. An account has the
// name of its owner.
func (s *echoService) checkOwner(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Get("user").(user).ID != c.Param("id") {
			return echo.NewHTTPError(http.StatusForbidden, "the account is not yours")
		}
		return next(c)
	}
}

func (s *echoService) showAccount(c echo.Context) error {
	cents, err := s.bank.show(c.Request().Context(), c.Param("id"))
	if err != nil {
		return s.refuse(err)
	}
	return c.JSON(http.StatusOK, echo.Map{"cents": cents})
}

// transfer runs under the locks of both accounts. The context of the request ends if
// one of the locks is lost, so the handler passes it on.
func (s *echoService) transfer(c echo.Context) error {
	var body transferBody
	if err := c.Echo().JSONSerializer.Deserialize(c, &body); err != nil {
		return s.refuse(errBody)
	}
	made, err := s.bank.transfer(c.Request().Context(), c.Param("id"), body.To, body.Cents)
	if err != nil {
		return s.refuse(err)
	}
	return c.JSON(http.StatusOK, made)
}

// placeOrder runs under the lock of the user.
func (s *echoService) placeOrder(c echo.Context) error {
	var body orderBody
	if err := c.Echo().JSONSerializer.Deserialize(c, &body); err != nil {
		return s.refuse(errBody)
	}
	number, err := s.bank.order(c.Request().Context(), c.Get("user").(user).ID, body.Item)
	if err != nil {
		return s.refuse(err)
	}
	return c.JSON(http.StatusCreated, echo.Map{"number": number})
}

// refuse returns the HTTP error for an error of the bank.
func (s *echoService) refuse(err error) error {
	return echo.NewHTTPError(httpStatusOf(err), err.Error())
}

package main

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/gofiber/fiber/v3"
	fiberrecover "github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/fiberlock"
)

// A fiberService is the service of a bank on Fiber.
type fiberService struct{ bank *bank }

// newFiberService returns the routes of a bank, with their locks.
//
// A lock comes after every middleware that may refuse the request: otherwise a client without rights
// could block an account. A copy of a payment needs no lock, so Idempotent comes before the locks.
func newFiberService(bank *bank, locks *core.Locker) *fiber.App {
	s := fiberService{bank}
	wait := core.WithWait(10 * time.Second)

	// Locks with the same name and key exclude each other on all routes.
	payer := fiberlock.Params("id").Named("account")
	both := core.All(payer, fiberlock.JSONField("to").Named("account"))
	self := fiberlock.Locals("user").Named("user")
	jobs := fiberlock.Literal("batch").Named("jobs")

	alone := fiberlock.Middleware(locks, both)        // a second request is refused
	inTurn := fiberlock.Middleware(locks, both, wait) // a second request waits
	reads := fiberlock.Middleware(locks, payer.Shared(), wait)
	batch := fiberlock.Middleware(locks, jobs.Permits(3), wait)
	user := fiberlock.Middleware(locks, self, wait)
	once := fiberlock.Idempotent(locks, core.Join(self, fiberlock.IdempotencyKey()), wait)
	paidOut := fiberlock.Middleware(locks, payer, core.WithFencing(true)) // its lease can be handed over

	app := fiber.New(fiber.Config{BodyLimit: 64 << 10})
	app.Use(fiberrecover.New())
	// Locks and Idempotent belong to the routes: in the group, Fiber does not know the route yet.
	account := app.Group("/accounts/:id", s.authenticate)
	account.Get("/balance", reads, s.showAccount)
	// A person sends a transfer. A second click is refused.
	account.Post("/transfer", alone, s.transfer)
	// A batch job sends settlements. Three run at once, and wait for their accounts.
	account.Post("/settle", batch, inTurn, s.transfer)
	// A program sends a payment again until it has an answer. A copy gets the first answer.
	account.Post("/payments", once, alone, s.transfer)
	// A worker makes a payout, under the same lock. The client has a 202 before.
	account.Post("/payouts", once, paidOut, s.payOut)
	account.Post("/orders", user, s.placeOrder)
	return app
}

// authenticate stores the user of the request for the locks and the handlers, and refuses requests for
// the account of another user. In this example the bearer token and the account are the user's name.
func (s fiberService) authenticate(c fiber.Ctx) error {
	user, ok := strings.CutPrefix(c.Get("Authorization"), "Bearer ")
	if !ok {
		return fiber.NewError(fiber.StatusUnauthorized, "the user is unknown")
	}
	if c.Params("id") != user {
		return fiber.NewError(fiber.StatusForbidden, "the account is not yours")
	}
	c.Locals("user", user)
	return c.Next()
}

// transfer runs under the locks of both accounts. c.Context() ends if one of the locks is lost, so the
// handler passes it on, and not c.
func (s fiberService) transfer(c fiber.Ctx) error {
	var body transfer
	if err := c.Bind().JSON(&body); err != nil {
		return s.reply(c, nil, errInvalid)
	}
	made, err := s.bank.transfer(c.Context(), c.Params("id"), body)
	return s.reply(c, made, err)
}

// showAccount shares the lock of the account with other readers.
func (s fiberService) showAccount(c fiber.Ctx) error {
	cents, err := s.bank.show(c.Context(), c.Params("id"))
	return s.reply(c, fiber.Map{"cents": cents}, err)
}

// payOut runs under the lock of the account, and hands it over.
func (s fiberService) payOut(c fiber.Ctx) error {
	var body transfer
	if err := c.Bind().JSON(&body); err != nil {
		return s.reply(c, nil, errInvalid)
	}
	location, err := s.bank.payOut(c.Context(), c.Params("id"), body.Cents)
	if err != nil {
		return s.reply(c, nil, err)
	}
	c.Set("Location", location)
	return c.Status(fiber.StatusAccepted).Send(nil)
}

// placeOrder runs under the lock of the user.
func (s fiberService) placeOrder(c fiber.Ctx) error {
	number, err := s.bank.order(c.Context(), fiber.Locals[string](c, "user"), c.Query("item"))
	return s.reply(c, fiber.Map{"number": number}, err)
}

// reply answers with JSON, or returns the error of Fiber for an error of the bank.
func (s fiberService) reply(c fiber.Ctx, body any, err error) error {
	if err != nil {
		r := refusalOf(err)
		return fiber.NewError(r.http, r.text)
	}
	return c.JSON(body)
}

// A fiberServer serves like an http.Server.
type fiberServer struct{ *fiber.App }

func (s fiberServer) Serve(l net.Listener) error {
	return s.Listener(l, fiber.ListenConfig{DisableStartupMessage: true})
}

func (s fiberServer) Shutdown(ctx context.Context) error { return s.ShutdownWithContext(ctx) }

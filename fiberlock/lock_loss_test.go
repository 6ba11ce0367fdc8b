package fiberlock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/fiberlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A handler that was cut off and gives no answer must not look like a success, nor, unless
// nothing has happened, like a refusal after which the client may try again.
func TestHandlerThatLosesItsLease(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler       fiber.Handler
		inTime        bool   // it does not wait for the end of its lease
		lock, attempt string // the code of the answer; "" is the handler's own
	}{
		"no answer": {func(fiber.Ctx) error { return nil }, false, "lease_lost", "outcome_unknown"},
		"no effect": {func(c fiber.Ctx) error {
			if attempt, ok := core.AttemptFromContext(c); ok {
				attempt.Decide(core.EndNoEffect)
			}
			return nil
		}, false, "lease_lost", "unavailable"},
		"the context's end":   {func(c fiber.Ctx) error { return c.Context().Err() }, false, "lease_lost", "outcome_unknown"},
		"the cause":           {func(c fiber.Ctx) error { return context.Cause(c.Context()) }, false, "lease_lost", "outcome_unknown"},
		"the end of another":  {func(fiber.Ctx) error { return core.ErrClosed }, true, "lease_lost", "outcome_unknown"},
		"an error of its own": {func(fiber.Ctx) error { return errors.New("own") }, false, "", ""},
		"a status with the cause": {func(c fiber.Ctx) error {
			return errors.Join(fiber.ErrNotFound, context.Cause(c.Context()))
		}, false, "", ""},
		"headers": {func(c fiber.Ctx) error {
			c.Set("Retry-After", "7")
			c.Set("Location", "/payments/1")
			return nil
		}, false, "lease_lost", "outcome_unknown"},
		"an answer": {ok, false, "", ""},
		"an answer and the cause": {func(c fiber.Ctx) error {
			_ = c.SendString("done")
			return context.Cause(c.Context())
		}, false, "lease_lost", "outcome_unknown"}, // the error counts, as in Fiber
		"a status": {func(c fiber.Ctx) error { c.Status(http.StatusAccepted); return nil }, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, limit := locktest.New(t), core.WithMaxHold(time.Millisecond)
			if test.inTime {
				limit = core.WithMaxHold(0)
			}
			handler := func(c fiber.Ctx) error {
				if !test.inTime {
					<-c.Context().Done()
				}
				return test.handler(c)
			}
			app := fiber.New()
			app.Post("/lock", fiberlock.Middleware(locks.Locker, byKey, limit), handler)
			app.Post("/attempt", fiberlock.Idempotent(locks.Locker, byKey, limit), handler)
			app.Post("/inside", fiberlock.Idempotent(locks.Locker, byKey), fiberlock.Middleware(locks.Locker, literal, limit), handler)
			for path, code := range map[string]string{"/lock": test.lock, "/attempt": test.attempt, "/inside": test.attempt} {
				adaptertest.WantLoss(t, adaptertest.Pay(t, handlerOf(app), path, "k", ""), code)
			}
		})
	}
}

// WriteError finds the type of the problem in the context of the request.
func TestWriteErrorOfALossHasTheProblemType(t *testing.T) {
	t.Parallel()
	opts := []core.Option{core.WithMaxHold(time.Millisecond), core.WithProblemType("/errors/")}
	app := fiber.New()
	app.Post("/", fiberlock.Middleware(locktest.New(t).Locker, literal, opts...), func(c fiber.Ctx) error {
		<-c.Context().Done()
		return fiberlock.WriteError(c, context.Cause(c.Context()))
	})
	adaptertest.WantTypedLoss(t, adaptertest.Pay(t, handlerOf(app), "/", "k", ""))
}

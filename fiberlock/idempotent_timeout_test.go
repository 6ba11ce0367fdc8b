package fiberlock_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/timeout"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/fiberlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Fiber's timeout middleware answers 408 while the handler still runs, and writes that to the answer of the
// handler. Nobody knows then what the handler would have answered.
func TestTimeoutLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	const limit = 500 * time.Millisecond // in which the handler begins
	for name, register := range map[string]func(app *fiber.App, once, pay fiber.Handler){
		"inside": func(app *fiber.App, once, pay fiber.Handler) {
			app.Post("/", once, timeout.New(pay, timeout.Config{Timeout: limit}))
		},
		"outside": func(app *fiber.App, once, pay fiber.Handler) {
			app.Post("/", timeout.New(func(c fiber.Ctx) error { return c.Next() }, timeout.Config{Timeout: limit}), once, pay)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if suite.Race && name == "outside" {
				t.Skip("the timeout middleware does not synchronize with its handler, which uses c")
			}
			after, released := make(chan struct{}), make(chan struct{})
			locks := locktest.New(t, core.WithObserver(func(e core.Event) {
				if e.Kind == core.Released && e.Idempotent {
					close(released)
				}
			}))
			if !adaptertest.IsFree(t, locks.Locker) { // is connected now
				t.Error("the key is locked")
			}
			app := fiber.New()
			register(app, fiberlock.Idempotent(locks.Locker, byKey), func(fiber.Ctx) error {
				<-after
				return nil
			})
			client, url := newClient(t), listen(t, app)
			if w := send(t, client, newRequest(t, http.MethodPost, url, "", "Idempotency-Key: k")); w.Code != http.StatusRequestTimeout {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			close(after)
			suite.AwaitClosed(t, "the attempt ends", released)
			adaptertest.WantProblem(t, adaptertest.Pay(t, handlerOf(app), "/", "k", ""), http.StatusConflict, "outcome_unknown")
		})
	}
}

// After a timeout middleware has answered, other goroutines may use c: neither its answer nor its context
// is changed.
func TestTheAnswerOfATimeoutIsKept(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold(theKey)()
	timeOut := func(c fiber.Ctx) {
		_ = c.Status(http.StatusRequestTimeout).SendString("too slow")
		c.Abandon()
	}
	for name, test := range map[string]struct {
		middleware fiber.Handler
		end        func() error // nil: the handler does not run
	}{
		"an unknown outcome": {fiberlock.Idempotent(locks.Locker, byKey), func() error { return nil }},
		"a panic": {fiberlock.Idempotent(locks.Locker, fiberlock.Literal("panic"), core.WithUnknown(func(f core.Failure) bool {
			if f.Status != 0 {
				t.Errorf("the status of the timeout, %d, is that of the handler", f.Status)
			}
			return true
		})), func() error { panic("crash") }},
		"a lost lock": {fiberlock.Middleware(locks.Locker, byKey), func() error { return core.ErrLost }},
		"a refusal":   {fiberlock.Middleware(locks.Locker, literal), nil},
	} {
		app := fiber.New()
		app.Post("/", func(c fiber.Ctx) error {
			defer func() {
				_ = recover()
				_, leased := core.LeaseFromContext(c)
				if answer := c.Response(); answer.StatusCode() != http.StatusRequestTimeout || string(answer.Body()) != "too slow" || leased != (test.end != nil) {
					t.Errorf("%s: %d %s, with a lease: %v", name, answer.StatusCode(), answer.Body(), leased)
				}
			}()
			if test.end == nil {
				timeOut(c)
			}
			return c.Next()
		}, test.middleware, func(c fiber.Ctx) error {
			timeOut(c)
			return test.end()
		})
		adaptertest.Pay(t, handlerOf(app), "/", "k", "")
	}
}

package fiberlock_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/fiberlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// The error that an error handler returns goes to the ErrorHandler of the application, which sends its
// text. If the error handler gives no answer, the middleware does.
func TestErrorHandler(t *testing.T) {
	t.Parallel()
	mine := errors.New("mine")
	for name, test := range map[string]struct {
		handle func(c fiber.Ctx, err error) error
		status int
		body   string
		hints  bool // Retry-After and Cache-Control
	}{
		"the default":             {fiberlock.WriteError, 409, `"code":"busy"`, true},
		"nothing":                 {func(fiber.Ctx, error) error { return nil }, 409, `"code":"busy"`, true},
		"its status only":         {func(c fiber.Ctx, _ error) error { c.Status(http.StatusConflict); return nil }, 409, `"code":"busy"`, true},
		"the error itself":        {func(_ fiber.Ctx, err error) error { return err }, 409, "busy", true},
		"a wrapped error":         {func(_ fiber.Ctx, err error) error { return fmt.Errorf("%s: %w", theKey, err) }, 409, "busy", true},
		"another error of core":   {func(fiber.Ctx, error) error { return core.ErrBusy }, 409, "busy", true},
		"with a status":           {func(_ fiber.Ctx, err error) error { return errors.Join(fiber.ErrLocked, err) }, 423, "Locked", true},
		"with that of a success":  {func(_ fiber.Ctx, err error) error { return errors.Join(fiber.NewError(200, "fine"), err) }, 409, "busy", true},
		"an own fiber.Error":      {func(fiber.Ctx, error) error { return fiber.ErrLocked }, 423, "Locked", false},
		"an error of its own":     {func(fiber.Ctx, error) error { return mine }, 500, "mine", false},
		"an answer":               {func(c fiber.Ctx, _ error) error { return c.Status(http.StatusTeapot).SendString("mine") }, 418, "mine", false},
		"a success on purpose":    {func(c fiber.Ctx, _ error) error { return c.SendStatus(http.StatusAccepted) }, 202, "Accepted", false},
		"a body without a status": {func(c fiber.Ctx, _ error) error { return c.SendString("mine") }, 409, "mine", false},
		"a stream":                {func(c fiber.Ctx, _ error) error { return c.SendStream(strings.NewReader("mine")) }, 409, "mine", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			defer locks.Hold(theKey)()
			app := fiber.New()
			app.Use(func(c fiber.Ctx) error {
				err := c.Next()
				var own *fiber.Error
				if refusal, _ := core.RefusalOf(err); err != nil && test.hints && (!errors.As(err, &own) || own.Code != test.status || refusal.Code != "busy") {
					t.Errorf("outside, the error is %v", err)
				}
				return err
			})
			app.Post("/lock", fiberlock.Middleware(locks.Locker, literal, fiberlock.WithErrorHandler(test.handle)), mustNotRun(t))
			// As a refusal inside Idempotent, an answer that refuses frees the key.
			app.Post("/inside", fiberlock.Idempotent(locks.Locker, byKey),
				fiberlock.Middleware(locks.Locker, literal, fiberlock.WithErrorHandler(test.handle)), mustNotRun(t))
			for _, path := range []string{"/lock", "/inside", "/inside"} {
				w := adaptertest.Pay(t, handlerOf(app), path, "k", "")
				if path == "/inside" && test.status/100 != 4 {
					continue // it counts as the answer of the handler
				}
				body, isDocument := w.Body.String(), strings.HasPrefix(test.body, `"code"`)
				if w.Code != test.status || body != test.body && !isDocument || isDocument && !strings.Contains(body, test.body) {
					t.Errorf("%s: %d %s", path, w.Code, body)
				}
				if header := w.Header(); (header.Get("Retry-After") == "1") != test.hints || (header.Get("Cache-Control") == "no-store") != test.hints {
					t.Errorf("%s: %v", path, header)
				}
			}
		})
	}
}

// Errors of the application's key are answered with their own status, if they have one. Their text is
// not sent.
func TestKeyErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err    error
		status int
		body   string
	}{
		"another error":            {errors.New(theKey), 500, `"code":"key_error"`},
		"a fiber.Error":            {fiber.NewError(http.StatusForbidden, "not yours"), 403, "not yours"},
		"a wrapped one":            {fmt.Errorf("%s: %w", theKey, fiber.ErrUnauthorized), 401, "Unauthorized"},
		"a fault of the key's":     {fiber.ErrServiceUnavailable, 503, "Service Unavailable"},
		"a success":                {fiber.NewError(http.StatusOK, theKey), 500, `"code":"key_error"`},
		"one that means something": {errors.Join(fiber.ErrUnauthorized, core.ErrNoKey), 400, `"code":"no_key"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			warned := 0
			locks := locktest.New(t, core.WithObserver(func(e core.Event) {
				if e.Kind == core.Warned {
					warned++
				}
			}))
			key := core.KeyOf(func(fiber.Ctx) (string, error) { return "", test.err })
			app := fiber.New()
			app.Post("/", fiberlock.Middleware(locks.Locker, key), mustNotRun(t))
			app.Post("/handled", fiberlock.Middleware(locks.Locker, key, fiberlock.WithErrorHandler(fiberlock.WriteError)), mustNotRun(t))
			for _, path := range []string{"/", "/handled"} {
				w := adaptertest.Pay(t, handlerOf(app), path, "k", "")
				if w.Code != test.status || !strings.Contains(w.Body.String(), test.body) || strings.Contains(w.Body.String(), theKey) {
					t.Errorf("%s: %d %s", path, w.Code, w.Body)
				}
			}
			if isFault := test.status >= http.StatusInternalServerError; (warned > 0) != isFault {
				t.Errorf("%d warnings", warned)
			}
		})
	}
}

// An error of core that a handler returns, such as that of a nested Locker.Do, may have the address of
// Redis in its text. Fiber's default ErrorHandler sends the text of an error.
func TestErrorOfCoreFromAHandler(t *testing.T) {
	t.Parallel()
	nested := func(fiber.Ctx) error {
		return &core.Error{Kind: core.ErrUnavailable, Cause: errors.New("dial tcp 10.0.0.5:6379: connection refused")}
	}
	for name, middleware := range map[string]fiber.Handler{
		"Middleware": fiberlock.Middleware(locktest.New(t).Locker, byKey),
		"Idempotent": fiberlock.Idempotent(locktest.New(t).Locker, byKey),
	} {
		app := fiber.New()
		app.Post("/", middleware, nested)
		if w := adaptertest.Pay(t, handlerOf(app), "/", "k", ""); strings.Contains(w.Body.String(), "10.0.0.5") {
			t.Errorf("%s: the client got %d %s", name, w.Code, w.Body)
		}
	}
}

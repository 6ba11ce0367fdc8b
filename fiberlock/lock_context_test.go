package fiberlock_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/fiberlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// core finds the lease and the attempt in each context that users of Fiber pass.
func TestLeaseInEachContext(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	app := fiber.New()
	check := func(c fiber.Ctx, wantAttempt bool) error {
		derived, cancel := context.WithTimeout(c, time.Minute)
		defer cancel()
		for name, ctx := range map[string]context.Context{"c.Context()": c.Context(), "c": c, "of c": derived, "c.RequestCtx()": c.RequestCtx()} {
			lease, leased := core.LeaseFromContext(ctx)
			attempt, attempted := core.AttemptFromContext(ctx)
			if !leased || lease.Context().Err() != nil || attempted != wantAttempt || (attempt != nil) != wantAttempt || len(core.LeasesFromContext(ctx)) != 1 {
				t.Errorf("%s: %v, %v, %v", name, lease, attempt, core.LeasesFromContext(ctx))
			}
		}
		return nil
	}
	app.Post("/lock", fiberlock.Middleware(locks.Locker, literal), func(c fiber.Ctx) error { return check(c, false) })
	app.Post("/attempt", fiberlock.Idempotent(locks.Locker, literal), func(c fiber.Ctx) error { return check(c, true) })
	app.Post("/none", func(c fiber.Ctx) error {
		if lease, leased := core.LeaseFromContext(c); leased {
			t.Errorf("%v", lease)
		}
		return nil
	})
	for _, path := range []string{"/lock", "/attempt", "/none"} {
		adaptertest.Pay(t, handlerOf(app), path, "k", "")
	}
}

// Do and Begin with c and the key of the request are refused at once: c does not end with the lease. With
// c.Context() they are nested.
func TestDoWithFiberContextIsRefused(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t, core.WithWait(time.Minute))
	app := fiber.New()
	do := func(ctx context.Context) error {
		return locks.Do(ctx, theKey, func(context.Context) error { return nil })
	}
	app.Post("/lock", fiberlock.Middleware(locks.Locker, literal), func(c fiber.Ctx) error {
		if err := do(c.Context()); err != nil {
			t.Errorf("nested: %v", err)
		}
		derived, cancel := context.WithCancel(c)
		defer cancel()
		for _, ctx := range []context.Context{c, derived} {
			if err := do(ctx); !errors.Is(err, core.ErrHiddenLease) {
				t.Errorf("Do: %v", err)
			}
			if work, err := core.Detach(ctx); work != nil || !errors.Is(err, core.ErrHiddenLease) {
				t.Errorf("Detach: %v, %v", work, err)
			}
		}
		return locks.Do(c, "another key", func(context.Context) error { return nil })
	})
	app.Post("/attempt", fiberlock.Idempotent(locks.Locker, literal), func(c fiber.Ctx) error {
		attempt, _ := core.AttemptFromContext(c)
		if _, err := locks.Begin(c, attempt.Key(), nil); !errors.Is(err, core.ErrHiddenLease) {
			t.Errorf("Begin: %v", err)
		}
		return nil
	})
	app.Post("/free", func(c fiber.Ctx) error { return do(c) })
	for _, path := range []string{"/lock", "/attempt", "/free"} {
		if w := adaptertest.Pay(t, handlerOf(app), path, "k", ""); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// After the handler has ended in any way, the middlewares outside and the ErrorHandler get the context
// from before the lock, and the lock is free.
func TestContextIsRestored(t *testing.T) {
	t.Parallel()
	crash, failure := errors.New("crash"), errors.New("failure")
	for name, test := range map[string]struct {
		end    func() error
		panics any
	}{
		"returns":            {func() error { return nil }, nil},
		"fails":              {func() error { return failure }, nil},
		"panics":             {func() error { panic(crash) }, crash},
		"ends its goroutine": {func() error { runtime.Goexit(); return nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			type key struct{}
			outer := context.WithValue(t.Context(), key{}, 1)
			restored := func(c fiber.Ctx, where string) {
				if _, leased := core.LeaseFromContext(c); leased || c.Context() != outer || !adaptertest.IsFree(t, locks.Locker) {
					t.Errorf("%s sees the context of the lock, or the lock held", where)
				}
			}
			handled := false
			app := fiber.New(fiber.Config{ErrorHandler: func(c fiber.Ctx, _ error) error {
				handled = true
				restored(c, "the ErrorHandler")
				return nil
			}})
			app.Use(func(c fiber.Ctx) error {
				c.SetContext(outer)
				defer restored(c, "a middleware outside")
				return c.Next()
			})
			handler := func(c fiber.Ctx) error {
				if _, leased := core.LeaseFromContext(c); !leased || c.Context().Value(key{}) != 1 {
					t.Error("the handler runs without its lock, or without the values outside")
				}
				return test.end()
			}
			app.Get("/", fiberlock.Middleware(locks.Locker, literal), handler)
			if name != "fails" { // which is rendered inside
				app.Post("/", fiberlock.Idempotent(locks.Locker, literal), handler)
			}
			for _, method := range []string{http.MethodPost, http.MethodGet} {
				done := make(chan any, 1)
				go func() {
					defer func() { done <- recover() }()
					handlerOf(app).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, "/", nil))
				}()
				if caught := suite.Receive(t, "the handler ends", done); caught != test.panics {
					t.Errorf("panic %v", caught)
				}
			}
			if handled != (name == "fails") {
				t.Errorf("the ErrorHandler was called: %v", handled)
			}
		})
	}
}

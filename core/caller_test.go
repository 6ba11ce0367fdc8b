package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// lockForever takes a lock and never releases it.
func lockForever(t *testing.T, locks *core.Locker, key string) {
	t.Helper()
	noError(t, errorOf(locks.Lock(t.Context(), key)))
}

// A lease that its holder never releases is renewed for ever. If WithCaller is on, events
// and the error of Close name the code that took the lease.
func TestForgottenLeaseIsReported(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const ttl = 2 * time.Second
			events := &recorder{}
			locks := locktest.New(t, core.WithTTL(ttl), core.WithObserver(events.record), core.WithCaller(on))
			begun := time.Now()
			lockForever(t, locks.Locker, "secret")
			time.Sleep(time.Minute)

			long := events.of(core.HeldLong)
			first := 0
			for _, e := range long {
				if !e.Repeated {
					first++
				}
				if strings.Contains(e.Caller, "/core/caller_test.go:") != on || e.Caller == "" == on {
					t.Errorf("caller %q", e.Caller)
				}
			}
			if first != 1 || len(long) < 3 || len(long) > 5 {
				t.Errorf("held long: %+v", long)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := locks.Close(ctx)
			wantError(t, err, context.DeadlineExceeded)
			text := err.Error()
			if !strings.HasPrefix(text, "reqlock: close: ") || !strings.Contains(text, "not released: 1") ||
				!strings.Contains(text, "since "+begun.UTC().Format(time.RFC3339)) || !strings.Contains(text, "for 1m1s") ||
				strings.Contains(text, "core_test.lockForever") != on || strings.Contains(text, "secret") || strings.Contains(text, "\n") {
				t.Errorf("close: %v", err)
			}
			closing := events.of(core.Closing)
			if len(closing) != 1 || closing[0].Holds != 1 || closing[0].Held != time.Minute || closing[0].Key.Raw() != "secret" ||
				strings.HasSuffix(closing[0].Caller, "(github.com/reqlock/reqlock/core_test.lockForever)") != on {
				t.Errorf("closing: %+v", closing)
			}
			synctest.Wait()
		})
	}
}

// The caller is the code that called the Locker, by any of its methods.
func TestCallerOfEachMethod(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(locks *core.Locker) error{
		"Lock": func(locks *core.Locker) error {
			_, err := locks.With(core.WithTTL(time.Minute)).Lock(context.Background(), "k")
			return err
		},
		"LockAll": func(locks *core.Locker) error {
			_, err := locks.LockAll(context.Background(), []string{"a", "b"})
			return err
		},
		"Begin": func(locks *core.Locker) error {
			_, err := locks.Begin(context.Background(), "k", nil)
			return err
		},
		"Enter": func(locks *core.Locker) error {
			_, _, err := core.Enter(context.Background(), locks, form{"k": "k"}, field("k"))
			return err
		},
		"Do": func(locks *core.Locker) (err error) {
			_ = locks.Do(context.Background(), "k", func(context.Context) error {
				err = locks.Close(endedContext())
				return nil
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithCaller(true))
			err := take(locks.Locker)
			if err == nil {
				err = locks.Close(endedContext())
			}
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "core_test.TestCallerOfEachMethod.func") {
				t.Errorf("%v", err)
			}
		})
	}
}

package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// none is a nil context.
var none context.Context

// Methods that end a lock accept a nil context.
func TestNilContextEndsLocks(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	end := func(end func(*core.Attempt) error) func(*testing.T, *core.Locker, string) error {
		return func(t *testing.T, locks *core.Locker, key string) error {
			return end(begin(t, locks, key))
		}
	}
	for name, run := range map[string]func(t *testing.T, locks *core.Locker, key string) error{
		"release": func(t *testing.T, locks *core.Locker, key string) error {
			return lock(t, locks, key).Release(none)
		},
		"nested release": func(t *testing.T, locks *core.Locker, key string) error {
			lease := lock(t, locks, key)
			defer release(t, lease)
			inner, err := locks.Lock(lease.Context(), key)
			if err != nil {
				return err
			}
			return inner.Release(none)
		},
		"extend": func(t *testing.T, locks *core.Locker, key string) error {
			lease := lock(t, locks, key)
			defer release(t, lease)
			return lease.Extend(none, time.Minute)
		},
		"commit":    end(func(a *core.Attempt) error { return a.Commit(none, nil) }),
		"done":      end(func(a *core.Attempt) error { return a.Done(none) }),
		"abort":     end(func(a *core.Attempt) error { return a.Abort(none) }),
		"interrupt": end(func(a *core.Attempt) error { return a.Unknown(none, nil) }),
		"close": func(t *testing.T, locks *core.Locker, key string) error {
			lease := lock(t, locks, key)
			released := start(func() error {
				for err := error(nil); !errors.Is(err, core.ErrClosed); {
					_, err = locks.TryLock(context.Background(), key)
				}
				return lease.Release(context.Background())
			})
			defer func() { wantError(t, suite.Receive(t, "the lease is released", released), nil) }()
			return locks.Close(none) // waits for the release
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := server.Client(t)
			defer func() {
				if problem := recover(); problem != nil {
					t.Errorf("panic: %v", problem)
				}
				if locked(t.Context(), rdb, name, "i:"+name) != 0 {
					t.Error("the key is still locked")
				}
			}()
			noError(t, run(t, newLocker(t, rdb), name))
		})
	}
}

// A nil context where no lock is held yet is a mistake of the programmer, and panics.
func TestNilContextTakesNoLock(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks := newLocker(t, rdb)
	never := func(context.Context) error {
		t.Error("it ran")
		return nil
	}
	for name, run := range map[string]func(){
		"lock":    func() { _, _ = locks.Lock(none, "k") },
		"try":     func() { _, _ = locks.TryLock(none, "k") },
		"do":      func() { _ = locks.Do(none, "k", never) },
		"do all":  func() { _ = locks.DoAll(none, []string{"k", "l"}, never) },
		"enter":   func() { _, _, _ = core.Enter(none, locks, form{"id": "k"}, field("id")) },
		"begin":   func() { _, _ = locks.Begin(none, "k", nil) },
		"record":  func() { _, _ = locks.ReadRecord(none, "k") },
		"resolve": func() { _ = locks.Resolve(none, "k", core.NotDone(), core.AttemptID{}) },
		"check":   func() { _ = locks.Check(none) },
	} {
		t.Run(name, func(t *testing.T) {
			if text := panicOf(run); !strings.HasPrefix(text, "reqlock: ") || !strings.Contains(text, "context is nil") {
				t.Errorf("panic %q", text)
			}
			wantNoKeys(t, rdb)
		})
	}
}

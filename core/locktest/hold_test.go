package locktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

func TestExpiredLeaseIsLost(t *testing.T) {
	both(t, func(t *testing.T) {
		locks := locktest.New(t, core.WithTTL(2*time.Second)) // a command has a quarter of the TTL
		got := enter(t.Context(), locks.Locker, request{"42"}, func(ctx context.Context) {
			locks.Expire("account:42")
			release := locks.Hold("account:42") // another process holds the key now
			defer release()
			<-ctx.Done()
			wantError(t, context.Cause(ctx), core.ErrLost)
		})
		if got.Code != "ran" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestExpireEndsLocksOfAnotherProcess(t *testing.T) {
	both(t, func(t *testing.T) {
		locks := locktest.New(t)
		release := locks.Hold("a")
		locks.Expire("a")
		lease, err := locks.TryLock(t.Context(), "a")
		noError(t, err)
		release() // does nothing: the lease is lost
		noError(t, lease.Release(t.Context()))
	})
}

// Hold, Abandon and Expire use the Locker's own key in Redis, for each prefix and each form of
// a key.
func TestKeysInRedisAreTheLockersKeys(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"reqlock:", "", "{app}:"} {
		for _, key := range []string{"a", "{a}", "a}b", "{", "h:" + string(make([]byte, 43)), "\x00\xff"} {
			t.Run(prefix+key, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					locks := locktest.New(t, core.WithPrefix(prefix), core.WithRenewal(false))
					busy := func() {
						t.Helper()
						wantError(t, errorOf(locks.TryLock(t.Context(), key)), core.ErrBusy)
					}
					release := locks.Hold(key)
					busy()
					release()
					locks.Abandon(key, time.Minute)
					busy()
					locks.Expire(key)
					noError(t, errorOf(locks.TryLock(t.Context(), key)))
					locks.Expire(key)
					locks.Hold(key)()
				})
			})
		}
	}
}

// Hold takes one permit, or is a reader, if the options or the Key say so.
func TestHoldShared(t *testing.T) {
	permits, reader := byAccount.Permits(2), byAccount.Shared()
	both(t, func(t *testing.T) {
		locks := locktest.New(t)
		busy := func(of ...core.Option) bool {
			t.Helper()
			lease, err := locks.With(of...).TryLock(t.Context(), "account:42")
			if err == nil {
				_ = lease.Release(t.Context())
			} else if !errors.Is(err, core.ErrBusy) {
				t.Fatal(err)
			}
			return err != nil
		}
		two, shared := core.WithPermits(2), core.WithShared(true)
		first := locktest.HoldFor(locks, permits, request{"42"})
		if busy(two) || !busy() {
			t.Error("a permit of two is not one of two")
		}
		second := locks.Hold("account:42", two)
		if !busy(two) || busy(core.WithPermits(3)) || busy(shared) {
			t.Error("two permits of two are not two")
		}
		first()
		second()
		first = locktest.HoldFor(locks, reader, request{"42"})
		second = locks.Hold("account:42", shared)
		if busy(shared) || !busy() {
			t.Error("a reader does not share the key")
		}
		first()
		locks.Expire("account:42")
		if busy() {
			t.Error("the key is locked after it has expired")
		}
		second() // does nothing: the lease is lost
		release := locktest.HoldFor(locks, byAccount.SharedWhen(func(request) bool { return false }), request{"42"})
		if !busy(shared) {
			t.Error("a writer shares the key")
		}
		release()
	})
}

func TestImpossibleCallsFailTheTest(t *testing.T) {
	t.Parallel()
	noKey := core.KeyOf(func(request) (string, error) { return "", nil })
	skip := byAccount.When(func(request) bool { return false })
	for name, c := range map[string]struct {
		do   func(tb testing.TB, l *locktest.Locks)
		want string
	}{
		"a bad option": {
			func(tb testing.TB, _ *locktest.Locks) { locktest.New(tb, core.WithTTL(0)) },
			"locktest: reqlock: WithTTL: 0s is below 100ms",
		},
		"hold twice": {
			func(_ testing.TB, l *locktest.Locks) { l.Hold("a"); l.Hold("a") },
			`locktest: hold "a": reqlock: busy`,
		},
		"hold more than there are permits": {
			func(_ testing.TB, l *locktest.Locks) {
				l.Hold("a", core.WithPermits(1))
				l.Hold("a", core.WithPermits(1))
			},
			`locktest: hold "a": reqlock: busy`,
		},
		"hold what the Locker holds": {
			func(_ testing.TB, l *locktest.Locks) {
				_, _ = l.TryLock(context.Background(), "a")
				l.Hold("a")
			},
			`locktest: hold "a": reqlock: busy`,
		},
		"hold no key": {
			func(_ testing.TB, l *locktest.Locks) { locktest.HoldFor(l, noKey, request{}) },
			`locktest: the key to hold: reqlock: no key: locktest_test.TestImpossibleCallsFailTheTest.func1 (hold_test.go:117) is empty`,
		},
		"hold for a request that takes no lock": {
			func(_ testing.TB, l *locktest.Locks) { locktest.HoldFor(l, skip, request{}) },
			"locktest: the key to hold: reqlock: skip",
		},
		"abandon what is held": {
			func(_ testing.TB, l *locktest.Locks) { l.Hold("a"); l.Abandon("a", time.Second) },
			`locktest: abandon "a": it is locked already`,
		},
		"abandon without a TTL": {
			func(_ testing.TB, l *locktest.Locks) { l.Abandon("a", 0) },
			`locktest: abandon "a": the TTL 0s is below 1ms`,
		},
		"expire what is free": {
			func(_ testing.TB, l *locktest.Locks) { l.Hold("a")(); l.Expire("a") },
			`locktest: expire "a": it is not locked`,
		},
		"expire no key": {
			func(_ testing.TB, l *locktest.Locks) { l.Expire("") },
			`locktest: the key "": reqlock: no key`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fatalOf(c.do); got != c.want {
				t.Errorf("got %q, not %q", got, c.want)
			}
		})
	}
}

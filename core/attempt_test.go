package core_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

func testAttempt(t *testing.T, servers *deployment) {
	locks, other := servers.newLocker(t, servers.Client(t)), servers.newLocker(t, servers.Client(t))
	a := begin(t, locks, "order")
	if a.Number() != 1 || a.Lease() == nil || a.Lease().Key() != "i:order" || bridge.MaxAnswer(a) != 1<<20 {
		t.Errorf("attempt %d under %v, up to %d bytes", a.Number(), a.Lease(), bridge.MaxAnswer(a))
	}
	inner, ok := core.AttemptFromContext(a.Lease().Context())
	if !ok || inner != a {
		t.Error("the context of the attempt does not carry the attempt")
	}
	wantError(t, errorOf(other.Begin(t.Context(), "order", []byte("f"))), core.ErrBusy)
	wantError(t, errorOf(other.Begin(t.Context(), "order", []byte("g"))), core.ErrMismatch)
	release(t, lock(t, other, "order")) // the lock with the same key is another lock

	release(t, a.Lease())
	wantError(t, errorOf(other.Begin(t.Context(), "order", []byte("f"))), core.ErrBusy) // Release on the lease of an attempt does nothing
	for range 2 {
		noError(t, a.Commit(t.Context(), []byte("answer")))
	}
	noError(t, a.Abort(t.Context())) // does nothing after the commit
	if a.Lease().Context().Err() == nil {
		t.Error("the context has not ended with the attempt")
	}
	wantReplay(t, locks, "order", "answer")
	wantReplay(t, other, "order", "answer")
	wantError(t, errorOf(locks.Begin(t.Context(), "order", []byte("g"))), core.ErrMismatch)
}

func testReplayedAttemptCannotBeEnded(t *testing.T, servers *deployment) {
	locks := servers.newLocker(t, servers.Client(t))
	noError(t, begin(t, locks, "k").Commit(t.Context(), nil))
	a, err := locks.Begin(t.Context(), "k", []byte("f"))
	noError(t, err)
	if a.Lease() != nil || a.Number() != 0 || core.Ending(bridge.Decision(a)) != core.EndUndecided {
		t.Errorf("lease %v, attempt %d", a.Lease(), a.Number())
	}
	for name, end := range map[string]func(context.Context) error{"done": a.Done, "abort": a.Abort, "unknown": func(ctx context.Context) error { return a.Unknown(ctx, nil) }} {
		if end(t.Context()) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if a.Commit(t.Context(), nil) == nil {
		t.Error("commit: no error")
	}
}

func testEndingsOfAnAttempt(t *testing.T, servers *deployment) {
	tests := map[string]struct {
		end  func(*core.Attempt, context.Context) error
		next error // of the next request with the key; nil if that request runs
	}{
		"done":    {(*core.Attempt).Done, core.ErrUnreplayable},
		"abort":   {(*core.Attempt).Abort, nil},
		"unknown": {func(a *core.Attempt, ctx context.Context) error { return a.Unknown(ctx, nil) }, core.ErrOutcomeUnknown},
		"a record over the limit": {func(a *core.Attempt, ctx context.Context) error {
			return a.Commit(ctx, bytes.Repeat([]byte("x"), bridge.MaxAnswer(a)+1))
		}, core.ErrUnreplayable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			locks := servers.newLocker(t, servers.Client(t), core.WithMaxAnswer(10))
			noError(t, test.end(begin(t, locks, name), t.Context()))
			if test.next == nil {
				_ = begin(t, locks, name).Abort(t.Context())
				return
			}
			for fingerprint, want := range map[string]error{"f": test.next, "g": core.ErrMismatch} {
				err := errorOf(locks.Begin(t.Context(), name, []byte(fingerprint)))
				wantError(t, err, want)
				var detail *core.Error
				if errors.As(err, &detail) && detail.RetryAfter != 0 { // a retry does not help
					t.Errorf("%v: retry after %v", err, detail.RetryAfter)
				}
			}
		})
	}
	locks := servers.newLocker(t, servers.Client(t), core.WithMaxAnswer(10))
	noError(t, begin(t, locks, "at the limit").Commit(t.Context(), []byte("0123456789")))
	wantReplay(t, locks, "at the limit", "0123456789")
}

func testNestedAttemptIsPartOfTheOuter(t *testing.T, servers *deployment) {
	locks := servers.newLocker(t, servers.Client(t))
	outer := begin(t, locks, "k")
	ctx := lock(t, locks, "another").Context()
	between, err := locks.Lock(outer.Lease().Context(), "between")
	noError(t, err)
	inner, err := locks.Begin(between.Context(), "k", []byte("g"))
	noError(t, err)
	if found, _ := core.AttemptFromContext(inner.Lease().Context()); found != inner {
		t.Error("the context of the inner attempt does not carry the attempt")
	}
	inner.Decide(core.EndUnknown)
	if core.Ending(bridge.Decision(outer)) != core.EndUnknown || core.Ending(bridge.Decision(inner)) != core.EndUnknown {
		t.Errorf("decided %v outside, %v inside", core.Ending(bridge.Decision(outer)), core.Ending(bridge.Decision(inner)))
	}
	noError(t, inner.Commit(t.Context(), []byte("inner")))
	wantError(t, errorOf(locks.Begin(ctx, "k", []byte("f"))), core.ErrBusy)
	release(t, between)
	noError(t, outer.Commit(t.Context(), []byte("outer")))
	wantReplay(t, locks, "k", "outer")
}

func TestNoAttemptInContext(t *testing.T) {
	t.Parallel()
	if a, ok := core.AttemptFromContext(t.Context()); ok || a != nil {
		t.Errorf("found %v", a)
	}
	var none *core.Attempt
	none.Decide(core.EndUnknown)
	if core.Ending(bridge.Decision(none)) != core.EndUndecided {
		t.Error("a nil attempt is decided")
	}
	locks := newLocker(t, redistest.Reuse(t).Client(t))
	if a, ok := core.AttemptFromContext(lock(t, locks, "k").Context()); ok || a != nil {
		t.Errorf("found %v in a lock", a)
	}
}

func TestKeysOfAttempts(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	for key, want := range map[string]error{"": core.ErrNoKey, strings.Repeat("x", 5000): core.ErrInvalidKey} {
		wantError(t, errorOf(locks.Begin(t.Context(), key, nil)), want)
		wantError(t, locks.Resolve(t.Context(), key, core.NotDone(), anAttempt(t)), want)
		wantError(t, errorOf(locks.ReadRecord(t.Context(), key)), want)
	}
}

func TestClosedLockerBeginsNoAttempt(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, redistest.Reuse(t).Client(t))
	noError(t, locks.Close(t.Context()))
	wantError(t, errorOf(locks.Begin(t.Context(), "k", nil)), core.ErrClosed)
	wantError(t, locks.Resolve(t.Context(), "k", core.NotDone(), anAttempt(t)), core.ErrClosed)
	wantError(t, errorOf(locks.ReadRecord(t.Context(), "k")), core.ErrClosed)
}

// Attempt.Key is the key that Resolve takes. This includes replays and nested attempts.
// The lease and the events have the key of the lock.
func TestKeyOfAnAttempt(t *testing.T) {
	t.Parallel()
	locks, events := observed(t, newEmbedded(t))
	var none *core.Attempt
	if none.Key() != "" {
		t.Errorf("no attempt has the key %q", none.Key())
	}
	a := begin(t, locks, "k")
	inner, err := locks.Begin(a.Lease().Context(), "k", nil)
	noError(t, err)
	wantError(t, forget(t, locks, a.Key()), core.ErrBusy)
	noError(t, a.Commit(t.Context(), nil))
	replay, err := locks.Begin(t.Context(), "k", []byte("f"))
	noError(t, err)
	for name, attempt := range map[string]*core.Attempt{"running": a, "nested": inner, "replayed": replay} {
		if attempt.Key() != "k" {
			t.Errorf("the %s attempt has the key %q", name, attempt.Key())
		}
	}
	if a.Lease().Key() != "i:k" || inner.Lease().Key() != "i:k" {
		t.Errorf("the leases have the keys %q and %q", a.Lease().Key(), inner.Lease().Key())
	}
	for _, kind := range []core.EventKind{core.Acquired, core.Committed, core.Released, core.Replayed} {
		if got := events.of(kind); len(got) != 1 || got[0].Key.Raw() != "i:k" {
			t.Errorf("%v: %+v", kind, got)
		}
	}
}

// A plain lock of the key of an attempt's lock is not an attempt.
func TestBeginUnderPlainLockOfItsKeyIsBusy(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	lease := lock(t, locks, "i:k")
	wantError(t, errorOf(locks.Begin(lease.Context(), "k", []byte("f"))), core.ErrBusy)
	release(t, lease)
	noError(t, begin(t, locks, "k").Commit(t.Context(), nil))
}

// The Locker refuses to resolve its own attempt while the attempt runs, although the lease
// is lost.
func testResolveDuringAttemptThatLostItsLease(t *testing.T, servers *deployment) {
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb, core.WithTTL(4*time.Second), core.WithWait(20*time.Second), core.WithRetryAfter(7*time.Second))
	a := begin(t, locks, "k")
	redistest.Lose(t, rdb, "the lease is lost", func() bool { return a.Lease().Context().Err() != nil }, servers.name("i:k"))
	err := forget(t, locks, "k")
	wantError(t, err, core.ErrBusy)
	if refusal, _ := core.RefusalOf(err); refusal.RetryAfter != 7*time.Second {
		t.Errorf("retry after %v", refusal.RetryAfter)
	}
	noError(t, a.Commit(t.Context(), []byte("answer")))
	wantReplay(t, locks, "k", "answer")
}

// Attempt 1 has died. Attempt 2 was aborted. The next attempt is still number 2.
func testNumberAfterAbortedRerun(t *testing.T, servers *deployment) {
	reject := servers.newLocker(t, servers.Client(t))
	rerun := reject.With(core.WithRerunUnknown(true))
	noError(t, begin(t, rerun, "k").Unknown(t.Context(), nil)) // as a crash does
	for range 2 {
		again := begin(t, rerun, "k")
		if again.Number() != 2 {
			t.Errorf("attempt %d", again.Number())
		}
		noError(t, again.Abort(t.Context()))
		wantError(t, errorOf(reject.Begin(t.Context(), "k", []byte("f"))), core.ErrOutcomeUnknown)
	}
}

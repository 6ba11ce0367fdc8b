package core_test

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

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
	t.Helper()
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb, core.WithTTL(4*time.Second), core.WithWait(20*time.Second), core.WithRetryAfter(7*time.Second))
	a := begin(t, locks, "k")
	redistest.Lose(t, rdb, "the lease is lost", func() bool { return a.Lease().Context().Err() != nil }, servers.name("i:k"))
	err := forget(t, locks, "k")
	wantError(t, err, core.ErrBusy)
	if outcome, _ := core.OutcomeOf(err); outcome.RetryAfter != 7*time.Second {
		t.Errorf("retry after %v", outcome.RetryAfter)
	}
	noError(t, a.Commit(t.Context(), []byte("answer")))
	wantReplay(t, locks, "k", "answer")
}

// Attempt 1 has died. Attempt 2 was aborted. The next attempt is still number 2.
func testNumberAfterAbortedRerun(t *testing.T, servers *deployment) {
	t.Helper()
	reject := servers.newLocker(t, servers.Client(t))
	rerun := reject.With(core.WithInterrupted(core.Rerun))
	noError(t, begin(t, rerun, "k").Interrupt(t.Context())) // as a crash does
	for range 2 {
		again := begin(t, rerun, "k")
		if again.Number() != 2 {
			t.Errorf("attempt %d", again.Number())
		}
		noError(t, again.Abort(t.Context()))
		wantError(t, errorOf(reject.Begin(t.Context(), "k", []byte("f"))), core.ErrInterrupted)
	}
}

// All states of a key on the embedded Redis that users test with.
func TestAttemptsOnAnEmbeddedRedis(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks, other := newLocker(t, rdb), newLocker(t, rdb)
	a := begin(t, locks, "k")
	wantError(t, errorOf(other.Begin(t.Context(), "k", []byte("f"))), core.ErrBusy)
	wantError(t, errorOf(other.Begin(t.Context(), "k", []byte("g"))), core.ErrMismatch)
	wantError(t, forget(t, other, "k"), core.ErrBusy)
	noError(t, a.Commit(t.Context(), nil))
	wantReplay(t, other, "k", "")
	noError(t, begin(t, locks, "i").Interrupt(t.Context()))
	wantError(t, errorOf(other.Begin(t.Context(), "i", []byte("f"))), core.ErrInterrupted)
	again := begin(t, other.With(core.WithInterrupted(core.Rerun), core.WithFencing(true)), "i")
	if again.Number() != 2 || again.Lease().Fence() == 0 {
		t.Errorf("attempt %d with the fence %d", again.Number(), again.Lease().Fence())
	}
	noError(t, again.Seal(t.Context()))
	wantError(t, errorOf(other.Begin(t.Context(), "i", []byte("f"))), core.ErrUnreplayable)
}

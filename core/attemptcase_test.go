package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A caller gives Commit its buffer, and uses the buffer again once Commit has
// returned, as of a *bytes.Buffer that comes from a pool.
func aBufferThatIsUsedAgainAfterCommit(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	var heard events
	locks := newLocker(t, servers.Client(t), core.WithWait(20*time.Second), core.WithObserver(heard.observe))
	a := begin(t, locks, "k")
	var group sync.WaitGroup
	got := make(chan *core.Attempt, 1)
	group.Go(func() {
		duplicate, err := locks.Begin(t.Context(), "k", []byte("f"))
		if err != nil {
			t.Error(err)
		}
		got <- duplicate
	})
	await(t, "it waits", func() bool { return len(heard.of(core.Waiting)) == 1 })
	buffer := []byte("answer")
	if err := a.Commit(t.Context(), buffer); err != nil {
		t.Fatal(err)
	}
	duplicate := <-got
	group.Wait()
	copy(buffer, "REUSED")
	if record, _ := duplicate.Replay(); string(record) != "answer" {
		t.Errorf("the duplicate's answer is %q", record)
	}
}

// The same where ctx ends before the commit is through: what is committed later is
// what the buffer says then.
func aBufferThatIsUsedAgainWhileItIsCommitted(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	proxy := servers.Proxy(t)
	locks, direct := newLocker(t, servers.Client(t, redistest.Through(proxy))), newLocker(t, servers.Client(t))
	a := begin(t, locks, "k")
	proxy.Refuse(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	buffer := []byte("answer")
	if err := a.Commit(ctx, buffer); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("commit: %v", err)
	}
	copy(buffer, "REUSED")
	proxy.Refuse(false)
	_ = a.Commit(t.Context(), nil) // waits for its end
	wantReplay(t, direct, "k", "answer")
}

// Abort has returned nil: the next request runs. The chance of the contrary is taken
// with several keys at a time.
func theNextRequestAfterAnAbortThatLostItsLease(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	rdb := servers.Client(t)
	locks := newLocker(t, rdb, core.WithTTL(4*time.Second))
	_ = begin(t, locks, "warm").Abort(t.Context())
	var group sync.WaitGroup
	for i := range 20 {
		key := fmt.Sprint("k", i)
		a := begin(t, locks, key)
		group.Go(func() {
			rdb.Del(t.Context(), "reqlock:i:"+key)
			<-a.Lease().Context().Done()
			if err := a.Abort(t.Context()); err != nil {
				t.Errorf("abort: %v", err)
				return
			}
			next, err := locks.Begin(t.Context(), key, []byte("f"))
			if err != nil {
				t.Errorf("the abort is done, and the next request gets %v", err)
				return
			}
			_ = next.Abort(t.Context())
		})
	}
	group.Wait()
}

// A handler heeds the end of its context at shutdown, and its attempt is aborted.
func anAbortAtShutdown(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	locks := newLocker(t, servers.Client(t), core.WithTTL(4*time.Second)) // Abort has a quarter of it
	a := begin(t, locks, "k")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_ = locks.Close(ctx)
	<-a.Lease().Context().Done()
	if err := a.Abort(t.Context()); err != nil {
		t.Fatalf("abort: %v", err) // which would be honest
	}
	other := newLocker(t, servers.Client(t), core.WithWait(20*time.Second))
	next, err := other.Begin(t.Context(), "k", []byte("f"))
	if err != nil {
		t.Fatalf("Abort said nil, and the next request gets %v", err)
	}
	_ = next.Abort(t.Context())
}

// Where trying again does not help, no error says when.
func retryAfterOfWhatDoesNotPass(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	locks := newLocker(t, servers.Client(t))
	_ = begin(t, locks, "k").Seal(t.Context())
	_ = begin(t, locks, "i").Interrupt(t.Context())
	for key, print := range map[string]string{"k": "f", "i": "f"} {
		_, err := locks.Begin(t.Context(), key, []byte(print))
		var detail *core.Error
		if errors.As(err, &detail) && detail.RetryAfter != 0 {
			t.Errorf("%v: retry after %v", err, detail.RetryAfter)
		}
	}
	_, err := locks.Begin(t.Context(), "k", []byte("g"))
	var detail *core.Error
	if errors.As(err, &detail) && detail.RetryAfter != 0 {
		t.Errorf("%v: retry after %v", err, detail.RetryAfter)
	}
}

// Decide does nothing on a nil Attempt; Decision is its counterpart.
func TestDecisionOfNoAttempt(t *testing.T) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panics: %v", p)
		}
	}()
	var none *core.Attempt
	none.Decide(core.Uncertain)
	_ = none.Decision()
}

// A damaged record answers 409 and never runs the handler.
func aDamagedRecord(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	rdb := servers.Client(t)
	locks := newLocker(t, rdb)
	for name, fields := range map[string][]string{
		"an unknown state":       {"s", "X", "t", "other:1", "f", "f", "n", "1"},
		"done, and no answer":    {"s", "D", "t", "other:1", "f", "f"},
		"running, and no token":  {"s", "R", "f", "f", "n", "1"},
		"running, and no number": {"s", "R", "t", "other:1", "f", "f"},
	} {
		t.Run(name, func(t *testing.T) {
			rdb.HSet(t.Context(), "{reqlock:i:"+name+"}:r", fields)
			a, err := locks.Begin(t.Context(), name, []byte("f"))
			if err == nil {
				t.Fatalf("it runs, as attempt %d", a.Number())
			}
			if outcome, _ := core.OutcomeOf(err); outcome.HTTP != 409 {
				t.Errorf("answered %d %s: %v", outcome.HTTP, outcome.Code, err)
			}
		})
	}
}

// A request that runs for longer than its record is kept, and dies: nobody knows
// what became of it, and by the policy it is not to run again.
func aRequestThatRunsForLongerThanItsRecordIsKept(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	var heard events
	opts := []core.Option{core.WithRetention(4 * time.Second), core.WithTTL(2 * time.Second), core.WithWait(20 * time.Second)}
	locks := newLocker(t, servers.Client(t), append(opts, core.WithObserver(heard.observe))...)
	begun := time.Now()
	begin(t, locks, "dies") // it is never ended
	ends := begin(t, locks, "ends")
	await(t, "it has run for longer", func() bool { return time.Since(begun) > 5*time.Second })
	other := newLocker(t, servers.Client(t), opts...)
	_, err := other.Begin(t.Context(), "ends", []byte("g"))
	wantError(t, err, core.ErrMismatch)
	if err := ends.Commit(t.Context(), []byte("answer")); err != nil {
		t.Fatal(err)
	}
	if n := len(heard.of(core.Restored)); n != 0 {
		t.Error("the observer is told that the record was evicted, or lost in a failover")
	}
	wantReplay(t, other, "ends", "answer")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = locks.Close(ended) // it dies
	_, err = other.Begin(t.Context(), "dies", []byte("f"))
	wantError(t, err, core.ErrInterrupted)
}

// No key of a lock that Named makes is that of an attempt's lock.
func TestNoLockIsNamedLikeAnAttempt(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Named takes the name")
		}
	}()
	core.Named("i", core.Of(func(s string) string { return s }))
}

package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The caller uses its buffer again after Commit has returned. It may be the memory of a
// *bytes.Buffer from a pool.
func testBufferIsReusedAfterCommit(t *testing.T, servers *deployment) {
	t.Helper()
	locks, events := servers.observed(t, servers.Client(t), core.WithWait(20*time.Second))
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
	suite.Eventually(t, "the duplicate waits", func() bool { return len(events.of(core.Waiting)) == 1 })
	buffer := []byte("answer")
	noError(t, a.Commit(t.Context(), buffer))
	duplicate := suite.Receive(t, "the duplicate returns", got)
	group.Wait()
	copy(buffer, "REUSED")
	if record, _ := duplicate.Replay(); string(record) != "answer" {
		t.Errorf("the duplicate's answer is %q", record)
	}
}

// The ctx of Commit ends before the commit is done. The commit goes on, and must not
// read the buffer.
func testBufferIsReusedDuringCommit(t *testing.T, servers *deployment) {
	t.Helper()
	proxy := servers.Proxy(t)
	locks, direct := servers.newLocker(t, servers.Client(t, redistest.Through(proxy))), servers.newLocker(t, servers.Client(t))
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
	_ = a.Commit(t.Context(), nil) // waits for the end of the first call
	wantReplay(t, direct, "k", "answer")
}

// If Abort has returned nil, the next request must run. Several keys make a failure more
// likely.
func testRequestAfterAbortThatLostItsLease(t *testing.T, servers *deployment) {
	t.Helper()
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb, core.WithTTL(4*time.Second))
	_ = begin(t, locks, "warm").Abort(t.Context())
	var attempts []*core.Attempt
	for i := range 20 {
		a := begin(t, locks, fmt.Sprint("k", i))
		rdb.Del(t.Context(), servers.name("i:"+a.Key()))
		attempts = append(attempts, a)
	}
	var group sync.WaitGroup
	for _, a := range attempts {
		redistest.Lose(t, rdb, "the lease is lost", func() bool { return a.Lease().Context().Err() != nil }, servers.name("i:"+a.Key()))
		group.Go(func() {
			if err := a.Abort(t.Context()); err != nil {
				t.Errorf("abort: %v", err)
				return
			}
			next, err := locks.Begin(t.Context(), a.Key(), []byte("f"))
			if err != nil {
				t.Errorf("the next request after an abort: %v", err)
				return
			}
			_ = next.Abort(t.Context())
		})
	}
	group.Wait()
}

// At shutdown the context of the handler ends, and the attempt is aborted.
func testAbortAtShutdown(t *testing.T, servers *deployment) {
	t.Helper()
	locks := servers.newLocker(t, servers.Client(t), core.WithTTL(4*time.Second)) // a command has a quarter of the TTL
	a := begin(t, locks, "k")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_ = locks.Close(ctx)
	suite.AwaitClosed(t, "the lease ends", a.Lease().Context().Done())
	noError(t, a.Abort(t.Context()))
	other := servers.newLocker(t, servers.Client(t), core.WithWait(20*time.Second))
	next, err := other.Begin(t.Context(), "k", []byte("f"))
	if err != nil {
		t.Fatalf("the next request after an abort: %v", err)
	}
	_ = next.Abort(t.Context())
}

// Where a retry does not help, the error has no RetryAfter.
func testNoRetryAfterWhereRetryDoesNotHelp(t *testing.T, servers *deployment) {
	t.Helper()
	locks := servers.newLocker(t, servers.Client(t))
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

// Once a request may have taken effect, NoEffect does not come back.
func TestNoEffectEnds(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for _, test := range []struct {
		decided []core.Decision
		want    core.Decision
	}{
		{[]core.Decision{core.NoEffect}, core.NoEffect},
		{[]core.Decision{core.Undecided, core.NoEffect}, core.NoEffect},
		{[]core.Decision{core.DropAnswer, core.NoEffect}, core.NoEffect},
		{[]core.Decision{core.NoEffect, core.NoEffect}, core.NoEffect},
		{[]core.Decision{core.NoEffect, core.Undecided}, core.Undecided},
		{[]core.Decision{core.NoEffect, core.Undecided, core.NoEffect}, core.Undecided},
		{[]core.Decision{core.NoEffect, core.StoreAnswer, core.NoEffect}, core.Undecided},
		{[]core.Decision{core.NoEffect, core.DropAnswer, core.Undecided, core.NoEffect}, core.Undecided},
		{[]core.Decision{core.NoEffect, core.Uncertain, core.NoEffect}, core.Undecided},
		{[]core.Decision{core.Uncertain, core.NoEffect}, core.Undecided},
		{[]core.Decision{core.NoEffect, core.Undecided, core.DropAnswer}, core.DropAnswer},
	} {
		attempt, err := locks.Begin(t.Context(), "k", nil)
		noError(t, err)
		for _, decided := range test.decided {
			attempt.Decide(decided)
		}
		if got := attempt.Decision(); got != test.want {
			t.Errorf("%v: %v, want %v", test.decided, got, test.want)
		}
		noError(t, attempt.Abort(t.Context()))
	}
}

func TestDecisionOfNilAttempt(t *testing.T) {
	t.Parallel()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panics: %v", p)
		}
	}()
	var none *core.Attempt
	none.Decide(core.Uncertain)
	_ = none.Decision()
}

// The answer to a damaged record is 409. The handler never runs.
func testDamagedRecord(t *testing.T, servers *deployment) {
	t.Helper()
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb)
	for name, fields := range map[string][]string{
		"an unknown state":       {"s", "X", "t", "other:1", "f", "f", "n", "1"},
		"done, and no answer":    {"s", "D", "t", "other:1", "f", "f"},
		"running, and no token":  {"s", "R", "f", "f", "n", "1"},
		"running, and no number": {"s", "R", "t", "other:1", "f", "f"},
	} {
		t.Run(name, func(t *testing.T) {
			rdb.HSet(t.Context(), servers.companion("i:"+name, "r"), fields)
			a, err := locks.Begin(t.Context(), name, []byte("f"))
			if err == nil {
				t.Fatalf("attempt %d runs", a.Number())
			}
			if outcome, _ := core.OutcomeOf(err); outcome.HTTP != 409 {
				t.Errorf("answered %d %s: %v", outcome.HTTP, outcome.Code, err)
			}
		})
	}
}

// Renewals keep the record for as long as the attempt runs. If the attempt dies then, its
// outcome is unknown, and the policy does not let another attempt run.
func testAttemptOutlivesRetention(t *testing.T, servers *deployment) {
	t.Helper()
	var events recorder
	const retention, left = time.Minute, 20 * time.Second
	opts := []core.Option{core.WithRetention(retention), core.WithTTL(time.Second), core.WithWait(20 * time.Second)}
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb, append(opts, core.WithObserver(events.record))...)
	begin(t, locks, "dies") // never ended
	ends := begin(t, locks, "ends")
	for _, key := range []string{"i:dies", "i:ends"} { // as if most of the retention were over
		if !rdb.PExpire(t.Context(), servers.companion(key, "r"), left).Val() {
			t.Errorf("%s has no record", key)
		}
		suite.Eventually(t, "a renewal keeps the record for its retention", func() bool {
			return rdb.PTTL(t.Context(), servers.companion(key, "r")).Val() > left
		})
	}
	other := servers.newLocker(t, servers.Client(t), opts...)
	wantError(t, errorOf(other.Begin(t.Context(), "ends", []byte("g"))), core.ErrMismatch)
	noError(t, ends.Commit(t.Context(), []byte("answer")))
	if n := len(events.of(core.Restored)); n != 0 {
		t.Error("the observer received Restored, but the record was not lost")
	}
	wantReplay(t, other, "ends", "answer")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = locks.Close(ended) // as the death of the process
	wantError(t, errorOf(other.Begin(t.Context(), "dies", []byte("f"))), core.ErrInterrupted)
}

// The key of a plain lock must not equal the key of an attempt's lock.
func TestNamedRefusesTheNameOfAttempts(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("Named accepts the name")
		}
	}()
	core.Named("i", core.Of(func(s string) string { return s }))
}

package resharding

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// longTTL is longer than any wait of a test. A key that is free in time was released, and
// has not expired.
const longTTL = 2 * time.Minute

// longLocker returns a Locker with a client of its own and long leases. On a busy machine a
// command may take longer than its usual timeout.
func longLocker(t *testing.T, cluster *redistest.Cluster, opts ...core.Option) *core.Locker {
	t.Helper()
	return newLocker(t, cluster.Client(t), append(opts, core.WithTTL(longTTL), core.WithCommandTimeout(patience/4))...)
}

// During the move the cluster refuses the release, and the caller gets an error. The
// Locker resends the release in the background until it succeeds.
func testRelease(t *testing.T, cluster *redistest.Cluster) {
	atEachStage(t, "released", func(t *testing.T, key string, stage int) {
		lease := lock(t, longLocker(t, cluster), key)
		m := beginMove(t, cluster, key)
		m.reach(t, stage)
		if err := lease.Release(t.Context()); !errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrLost) {
			t.Errorf("release during the move: %v", err)
		}
		if !m.hasKey(t, lockOf(key)) {
			t.Error("the key is gone before the end of the move")
		}
		m.finish()
		moved := time.Now()
		suite.Eventually(t, "the key is free", func() bool { return !m.hasKey(t, lockOf(key)) })
		t.Logf("free %v after the move", time.Since(moved).Round(time.Millisecond))
		checkLeftovers(t, cluster, key)
	})
}

// commitTime is how long the Locker retries a commit.
const commitTime = 2 * time.Second

// The Locker retries a commit for two seconds, and an abort for longer.
func testCommit(t *testing.T, cluster *redistest.Cluster) {
	atEachStage(t, "committed", func(t *testing.T, key string, stage int) {
		runner := longLocker(t, cluster)
		others := longLocker(t, cluster, core.WithWait(time.Minute))
		begin := func(locks *core.Locker, key string) *core.Attempt {
			attempt, err := locks.Begin(t.Context(), key, nil)
			if err != nil {
				t.Fatal(err)
			}
			return attempt
		}
		committed, aborted := begin(runner, key), begin(runner, key+"aborted")
		m := beginMove(t, cluster, key)
		m.key = "i:" + key
		m.reach(t, stage)
		another := make(chan result, 1)
		go func() {
			attempt, err := others.Begin(t.Context(), key, nil)
			another <- result{attempt, err}
		}()
		abortErr := aborted.Abort(t.Context())
		commit := make(chan commitResult, 1)
		go func() {
			begun := time.Now()
			err := committed.Commit(t.Context(), []byte("the answer"))
			commit <- commitResult{begun, time.Since(begun), err}
		}()
		select {
		case got := <-commit:
			t.Logf("committed during the move: %v", got.err)
			commit <- got
		case <-time.After(commitTime / 10):
		}
		m.finish()
		moved := time.Now()
		isUnknown := suite.Receive(t, "the commit returns", commit).isUnknown(t, moved)
		if isUnknown {
			// The attempt counts as running until its lease ends, which this test does not await.
			if err := cluster.Client(t).Del(t.Context(), lockOf(m.key)).Err(); err != nil {
				t.Fatal(err)
			}
		}
		suite.Receive(t, "another caller gets the answer", another).check(t, isUnknown)
		if abortErr != nil && !errors.Is(abortErr, core.ErrUnavailable) {
			t.Errorf("abort: %v", abortErr)
		}
		again := begin(others, key+"aborted")
		if _, isReplay := again.Replay(); isReplay || again.Number() != 1 {
			t.Errorf("after the abort: number %d, a replay: %t", again.Number(), isReplay)
		} else if err := again.Commit(t.Context(), nil); err != nil {
			t.Errorf("commit of the next attempt: %v", err)
		}
		checkLeftovers(t, cluster, key)
	})
}

// A commitResult is the result of a Commit, when it was called, and how long it took.
type commitResult struct {
	begun time.Time
	took  time.Duration
	err   error
}

// isUnknown reports whether the outcome of the commit is unknown, because the move took up most
// of the time for retries, as it may on a busy machine. It fails the test for other errors, if the
// Locker has given up early, and if there was time enough to reach the new master.
func (r commitResult) isUnknown(t *testing.T, moved time.Time) bool {
	t.Helper()
	isUnknown := errors.Is(r.err, core.ErrUnavailable)
	if r.err != nil && (!isUnknown || r.took < commitTime || moved.Sub(r.begun) < commitTime/2) {
		t.Errorf("commit after %v, %v after the move: %v", r.took, r.begun.Add(r.took).Sub(moved), r.err)
	}
	return isUnknown
}

// A result is the result of a Begin of a caller that waits for the answer of an attempt.
type result struct {
	attempt *core.Attempt
	err     error
}

// check fails the test unless the caller got the answer that was committed. If the outcome of the
// commit is unknown, the caller may get ErrOutcomeUnknown instead. The request never runs again.
func (r result) check(t *testing.T, isUnknown bool) {
	t.Helper()
	if r.err != nil {
		if !isUnknown || !errors.Is(r.err, core.ErrOutcomeUnknown) {
			t.Errorf("another caller: %v", r.err)
		}
		return
	}
	if answer, done := r.attempt.Replay(); !done || string(answer) != "the answer" {
		t.Errorf("the replay is %q, %t", answer, done)
	}
}

// A waiter that cancels during a move is removed from the queue after the move.
func testCancel(t *testing.T, cluster *redistest.Cluster) {
	atEachStage(t, "cancelled", func(t *testing.T, key string, stage int) {
		lease := lock(t, longLocker(t, cluster), key)
		ctx, cancel := context.WithCancel(t.Context())
		waiter := startLock(ctx, longLocker(t, cluster), key)
		awaitQueue(t, cluster, key, waiter)
		m := beginMove(t, cluster, key)
		m.reach(t, stage)
		cancel()
		if got := suite.Receive(t, "the waiter returns", waiter); !errors.Is(got.err, context.Canceled) {
			t.Errorf("the waiter got %v", got.err)
		}
		m.finish()
		suite.Eventually(t, "the queue is gone", func() bool { return !m.hasKey(t, queueOf(key)) })
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		checkLeftovers(t, cluster, key)
	})
}

// Close returns during a move although a holder keeps its lease, a release is being
// resent, and callers wait.
func testClose(t *testing.T, cluster *redistest.Cluster) {
	const key = "{closed}"
	locks := shortLocker(t, cluster)
	kept, released := lock(t, locks, key), lock(t, locks, key+"released")
	waiter := startLock(t.Context(), shortLocker(t, cluster), key)
	ownWaiter := startLock(t.Context(), locks, key)
	m := beginMove(t, cluster, key)
	m.reach(t, 1)
	if err := released.Release(t.Context()); err != nil && !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("release during the move: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- locks.Close(ctx) }()
	if err := suite.Receive(t, "Close returns", closed); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close with a holder: %v", err)
	}
	if cause := context.Cause(kept.Context()); !errors.Is(cause, core.ErrClosed) {
		t.Errorf("the holder's context ended by %v", cause)
	}
	if got := suite.Receive(t, "the waiter of the closed Locker returns", ownWaiter); !errors.Is(got.err, core.ErrClosed) {
		t.Errorf("a waiter of the closed Locker got %v", got.err)
	}
	_ = kept.Release(t.Context())
	m.finish()
	next := suite.Receive(t, "the waiter of the other Locker is served", waiter)
	if next.err != nil {
		t.Fatal(next.err)
	}
	if err := next.lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	checkLeftovers(t, cluster, key)
}

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
		type result struct {
			attempt *core.Attempt
			err     error
		}
		replayed := make(chan result, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			attempt, err := others.Begin(ctx, key, nil)
			replayed <- result{attempt, err}
		}()
		abortErr := aborted.Abort(t.Context())
		commit, begun := make(chan error, 1), time.Now()
		go func() { commit <- committed.Commit(t.Context(), []byte("the answer")) }()
		select {
		case err := <-commit:
			t.Logf("committed during the move: %v", err)
			commit <- err
		case <-time.After(200 * time.Millisecond): // of its two seconds
		}
		m.finish()
		// The retries of the commit reach the new master if the move ends within a
		// second. On a busy machine it may take longer.
		isLate := time.Since(begun) > time.Second
		if err := suite.Receive(t, "the commit returns", commit); isLate && errors.Is(err, core.ErrUnavailable) {
			cancel()
			if got := suite.Receive(t, "the waiter for the answer returns", replayed); got.err == nil {
				wantReplay(t, got.attempt) // the commit is done, and its reply was lost
			} // else the outcome is unknown
			cluster.Client(t).Del(context.Background(), lockOf(m.key)) // the attempt still counts as running
			t.Skipf("the machine was too busy to end the move during the commit: %v", err)
		} else if err != nil {
			t.Errorf("commit: %v", err)
		}
		if got := suite.Receive(t, "another caller gets the answer", replayed); got.err != nil {
			t.Errorf("another caller: %v", got.err)
		} else {
			wantReplay(t, got.attempt)
		}
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

// wantReplay fails the test unless the attempt replays the answer that was committed.
func wantReplay(t *testing.T, attempt *core.Attempt) {
	t.Helper()
	if answer, done := attempt.Replay(); !done || string(answer) != "the answer" {
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

package resharding

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// longTTL is longer than a test waits for anything: what is free in time was
// released, and did not fall by its TTL.
const longTTL = 3 * patience

// A release that Redis does not take amid the move of its slot is sent again
// beside the caller, who is told, until it is taken.
func released(t *testing.T, cluster *redistest.Cluster) {
	atEachStage(t, "{released}", func(t *testing.T, key string, stage int) {
		lease := lock(t, newLocker(t, cluster.Client(t), core.WithTTL(longTTL)), key)
		m := beginMove(t, cluster, key)
		m.reach(t, stage)
		if err := lease.Release(t.Context()); !errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrLost) {
			t.Errorf("release amid the move: %v", err)
		}
		if !has(t, m, lockOf(key)) {
			t.Error("the key is gone before the end of the move")
		}
		m.Finish()
		moved := time.Now()
		await(t, "the key is free", func() bool { return !has(t, m, lockOf(key)) })
		t.Logf("free %v after the move", time.Since(moved).Round(time.Millisecond))
		checkLeft(t, cluster)
	})
}

// An attempt that ends amid a move ends as it was told to: its commit is tried for
// two seconds, its abort for longer.
func committed(t *testing.T, cluster *redistest.Cluster) {
	atEachStage(t, "{committed}", func(t *testing.T, key string, stage int) {
		runner := newLocker(t, cluster.Client(t), core.WithTTL(longTTL))
		others := newLocker(t, cluster.Client(t), core.WithTTL(longTTL), core.WithWait(time.Minute))
		begin := func(locks *core.Locker, key string) *core.Attempt {
			attempt, err := locks.Begin(t.Context(), key, nil)
			if err != nil {
				t.Fatal(err)
			}
			return attempt
		}
		done, undone := begin(runner, key), begin(runner, key+"undone")
		m := beginMove(t, cluster, key)
		m.key = "i:" + key
		m.reach(t, stage)
		replayed := make(chan *core.Attempt, 1)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() {
			attempt, err := others.Begin(ctx, key, nil)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			replayed <- attempt
		}()
		aborted := undone.Abort(t.Context())
		commit, begun := make(chan error, 1), time.Now()
		go func() { commit <- done.Commit(t.Context(), []byte("the answer")) }()
		select {
		case err := <-commit:
			t.Logf("committed amid the move: %v", err)
			commit <- err
		case <-time.After(200 * time.Millisecond): // of its two seconds
		}
		m.Finish()
		late := time.Since(begun) > time.Second
		if err := receive(t, "the commit ends", commit); late && errors.Is(err, core.ErrUnavailable) {
			leave()
			receive(t, "who waits for it leaves", replayed)
			cluster.Client(t).Del(context.Background(), lockOf(m.key)) // it runs, as far as others know
			t.Skipf("the machine was too busy to end the move in the time of a commit: %v", err)
		} else if err != nil {
			t.Errorf("commit: %v", err)
		}
		if attempt := receive(t, "another one is answered", replayed); attempt != nil {
			if answer, done := attempt.Replay(); !done || string(answer) != "the answer" {
				t.Errorf("the replay is %q, %t", answer, done)
			}
		}
		if aborted != nil && !errors.Is(aborted, core.ErrUnavailable) {
			t.Errorf("abort: %v", aborted)
		}
		again := begin(others, key+"undone")
		if _, replay := again.Replay(); replay || again.Number() != 1 {
			t.Errorf("after the abort: number %d, a replay: %t", again.Number(), replay)
		} else if err := again.Commit(t.Context(), nil); err != nil {
			t.Errorf("commit of the next one: %v", err)
		}
		checkLeft(t, cluster)
	})
}

// A waiter who leaves amid a move takes its token out of the line when that can be
// had again.
func deserted(t *testing.T, cluster *redistest.Cluster) {
	atEachStage(t, "{deserted}", func(t *testing.T, key string, stage int) {
		lease := lock(t, newLocker(t, cluster.Client(t), core.WithTTL(longTTL)), key)
		ctx, leave := context.WithCancel(t.Context())
		waiter := lockAside(ctx, newLocker(t, cluster.Client(t), core.WithTTL(longTTL)), key)
		awaitLine(t, cluster, key, waiter)
		m := beginMove(t, cluster, key)
		m.reach(t, stage)
		leave()
		if got := receive(t, "the waiter leaves", waiter); !errors.Is(got.err, context.Canceled) {
			t.Errorf("the waiter got %v", got.err)
		}
		m.Finish()
		await(t, "nobody stands in line", func() bool { return !has(t, m, lineOf(key)) })
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		checkLeft(t, cluster)
	})
}

// Close ends in the midst of a move, also where a holder has not come back, a
// release is being sent again, and somebody waits.
func closed(t *testing.T, cluster *redistest.Cluster) {
	const key = "{closed}"
	locks := shortLocker(t, cluster)
	held, freed := lock(t, locks, key), lock(t, locks, key+"freed")
	waiter := lockAside(t.Context(), shortLocker(t, cluster), key)
	own := lockAside(t.Context(), locks, key)
	m := beginMove(t, cluster, key)
	m.reach(t, 1)
	if err := freed.Release(t.Context()); err != nil && !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("release amid the move: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- locks.Close(ctx) }()
	if err := receive(t, "close returns", ended); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close with a holder that stays: %v", err)
	}
	if cause := context.Cause(held.Context()); !errors.Is(cause, core.ErrClosed) {
		t.Errorf("the holder was told: %v", cause)
	}
	if got := receive(t, "the waiter of the closed Locker leaves", own); !errors.Is(got.err, core.ErrClosed) {
		t.Errorf("a waiter of the closed Locker got %v", got.err)
	}
	_ = held.Release(t.Context())
	m.Finish()
	next := receive(t, "the waiter of the other Locker is served", waiter)
	if next.err != nil {
		t.Fatal(next.err)
	}
	if err := next.lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	checkLeft(t, cluster)
}

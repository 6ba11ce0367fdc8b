package reshardtest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redistest"
)

// atEachStage runs a test at each stage of the move of a slot, which is the
// test's own. The test is given the number of the stage.
func atEachStage(t *testing.T, tag string, test func(t *testing.T, key string, stage int)) {
	t.Helper()
	for i, s := range stages {
		t.Run(s.name, func(t *testing.T) { test(t, tag+string(rune('0'+i)), i) })
	}
}

// A granted lease, or why there is none, and when.
type granted struct {
	lease *core.Lease
	err   error
	at    time.Time
}

// lockAside locks the key on a goroutine of its own.
func lockAside(ctx context.Context, locks *core.Locker, key string) chan granted {
	done := make(chan granted, 1)
	go func() {
		lease, err := locks.Lock(ctx, key)
		done <- granted{lease, err, time.Now()}
	}()
	return done
}

// lock takes a lock or fails the test.
func lock(t *testing.T, locks *core.Locker, key string) *core.Lease {
	t.Helper()
	lease, err := locks.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// receive waits for what must come in time.
func receive[T any](t *testing.T, what string, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(patience):
		t.Fatalf("not so in time: %s", what)
	}
	return got
}

// A holder whose slot is on its way for longer than its lease cannot be renewed
// where a renewal, which looks at the lock and its line, meets only one of them, or
// no line at all. The holder is told before its lease ends, and who tries
// meanwhile gets the key after that.
func outlived(t *testing.T, cluster *redistest.Cluster) {
	atEachStage(t, "{outlived}", func(t *testing.T, key string, stage int) {
		holder, rival := shortLocker(t, cluster), shortLocker(t, cluster)
		lease := lock(t, holder, key)
		m := beginMove(t, cluster, key)
		m.reach(t, stage)

		var next granted
		await(t, "the rival gets the key", func() bool {
			next.lease, next.err = rival.TryLock(t.Context(), key)
			next.at = time.Now()
			if next.err != nil && !errors.Is(next.err, core.ErrBusy) && !errors.Is(next.err, core.ErrUnavailable) {
				t.Fatal(next.err)
			}
			return next.err == nil
		})
		checkLost(t, lease, next.at)
		m.Finish()
		if err := next.lease.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		checkLeft(t, cluster)
	})
}

// Where somebody waits in Redis, and all keys of the lock are on one side, the
// holder is renewed for as long as the move lasts.
func renewed(t *testing.T, cluster *redistest.Cluster) {
	atEachStage(t, "{renewed}", func(t *testing.T, key string, stage int) {
		var renewals atomic.Int64
		holder := shortLocker(t, cluster, core.WithObserver(func(event core.Event) {
			if event.Kind == core.Renewed && event.Err == nil {
				renewals.Add(1)
			}
		}))
		lease := lock(t, holder, key)
		waiter := lockAside(t.Context(), shortLocker(t, cluster), key)
		awaitLine(t, cluster, key, waiter)
		m := beginMove(t, cluster, key)
		m.reach(t, stage)
		apart := stages[stage].apart
		if apart {
			receive(t, "the holder is told", lease.Context().Done())
		} else {
			before := renewals.Load()
			await(t, "the lease was renewed for longer than its TTL", func() bool { return renewals.Load() > before+3 })
		}
		m.Finish()
		if apart {
			next := receive(t, "the waiter is served", waiter)
			checkLost(t, lease, next.at)
			waiter <- next
		} else if err := lease.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		next := receive(t, "the waiter is served", waiter)
		if next.err != nil {
			t.Fatal(next.err)
		}
		if err := next.lease.Release(t.Context()); err != nil {
			t.Errorf("release by the waiter: %v", err)
		}
		checkLeft(t, cluster)
	})
}

// shortLocker returns a Locker with a client of its own, whose leases are short.
func shortLocker(t *testing.T, cluster *redistest.Cluster, opts ...core.Option) *core.Locker {
	t.Helper()
	return newLocker(t, cluster.Client(t), append(opts, core.WithTTL(time.Second))...)
}

// checkLost fails the test unless the holder of the lease was told of its end, and
// the next one got the key no earlier than that.
func checkLost(t *testing.T, lease *core.Lease, next time.Time) {
	t.Helper()
	if until := lease.ValidUntil(); next.Before(until) {
		t.Errorf("the next one got the key %v before the end of the lease", until.Sub(next))
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, core.ErrLost) {
		t.Errorf("the holder was told: %v", cause)
	}
	if err := lease.Release(t.Context()); !errors.Is(err, core.ErrLost) {
		t.Errorf("release of the lost lease: %v", err)
	}
}

// awaitLine waits until the waiter stands in the line of the key: amid a move of its
// slot there would be none yet.
func awaitLine(t *testing.T, cluster *redistest.Cluster, key string, waiter chan granted) {
	t.Helper()
	rdb := cluster.Client(t)
	await(t, "somebody stands in line", func() bool {
		if len(waiter) > 0 {
			t.Fatalf("the waiter does not wait: %v", (<-waiter).err)
		}
		n, err := rdb.LLen(t.Context(), lineOf(key)).Result()
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
}

// has reports whether one of the two masters of a move has the key.
func has(t *testing.T, m *move, name string) bool {
	t.Helper()
	for _, rdb := range m.nodes {
		keys, err := rdb.ClusterGetKeysInSlot(t.Context(), m.slot, 1000).Result()
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(keys, name) {
			return true
		}
	}
	return false
}

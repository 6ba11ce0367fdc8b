package resharding

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
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

// A holder is renewed for as long as the move of its slot lasts, at each stage, with
// and without somebody who waits, although most commands with several keys are
// refused then.
func renewed(t *testing.T, cluster *redistest.Cluster) {
	t.Run("nobody waits", func(t *testing.T) {
		atEachStage(t, "{lone}", func(t *testing.T, key string, stage int) {
			keepsItsLease(t, cluster, key, stage, false, core.WithFencing(true))
		})
	})
	t.Run("somebody waits", func(t *testing.T) {
		atEachStage(t, "{renewed}", func(t *testing.T, key string, stage int) {
			keepsItsLease(t, cluster, key, stage, true)
		})
	})
}

func keepsItsLease(t *testing.T, cluster *redistest.Cluster, key string, stage int, awaited bool, opts ...core.Option) {
	t.Helper()
	var renewals atomic.Int64
	holder := shortLocker(t, cluster, append(opts, core.WithObserver(func(event core.Event) {
		if event.Kind == core.Renewed && event.Err == nil {
			renewals.Add(1)
		}
	}))...)
	lease := lock(t, holder, key)
	var waiter chan granted
	if awaited {
		waiter = lockAside(t.Context(), shortLocker(t, cluster, opts...), key)
		awaitLine(t, cluster, key, waiter)
	}
	m := beginMove(t, cluster, key)
	m.reach(t, stage)
	before := renewals.Load()
	await(t, "the lease was renewed for longer than its TTL", func() bool { return renewals.Load() > before+3 })
	m.Finish()
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	if awaited {
		next := receive(t, "the waiter is served", waiter)
		if next.err != nil {
			t.Fatal(next.err)
		}
		if err := next.lease.Release(t.Context()); err != nil {
			t.Errorf("release by the waiter: %v", err)
		}
	}
	checkLeft(t, cluster)
}

// shortLocker returns a Locker with a client of its own, whose leases are short, but
// not so short that a busy machine is too late to renew them.
func shortLocker(t *testing.T, cluster *redistest.Cluster, opts ...core.Option) *core.Locker {
	t.Helper()
	return newLocker(t, cluster.Client(t), append(opts, core.WithTTL(3*time.Second))...)
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

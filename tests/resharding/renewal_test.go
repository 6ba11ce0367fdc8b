package resharding

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A grant is the result of Lock.
type grant struct {
	lease *core.Lease
	err   error
}

func startLock(ctx context.Context, locks *core.Locker, key string) chan grant {
	done := make(chan grant, 1)
	go func() {
		lease, err := locks.Lock(ctx, key)
		done <- grant{lease, err}
	}()
	return done
}

func lock(t *testing.T, locks *core.Locker, key string) *core.Lease {
	t.Helper()
	lease, err := locks.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// shortTTL returns the TTL of short leases. Two thirds of it are the time for a renewal, which
// a busy machine needs. The race detector makes all code about ten times slower, so the TTL
// is longer then.
func shortTTL() time.Duration {
	if suite.Race {
		return 3 * time.Second
	}
	return 1500 * time.Millisecond
}

func shortLocker(t *testing.T, cluster *redistest.Cluster, opts ...core.Option) *core.Locker {
	t.Helper()
	return newLocker(t, cluster.Client(t), append(opts, core.WithTTL(shortTTL()))...)
}

// awaitQueue waits until the queue of the key exists. During a move of its slot it cannot
// come into being.
func awaitQueue(t *testing.T, cluster *redistest.Cluster, key string, waiter chan grant) {
	t.Helper()
	rdb := cluster.Client(t)
	suite.Eventually(t, "the queue has a waiter", func() bool {
		if len(waiter) > 0 {
			t.Fatalf("the waiter does not wait: %v", (<-waiter).err)
		}
		n, err := rdb.LLen(t.Context(), queueOf(key)).Result()
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
}

// testRenewal stays in each stage of a move for longer than a TTL, with and without a
// waiter. The cluster refuses most commands with several keys in these stages.
func testRenewal(t *testing.T, cluster *redistest.Cluster) {
	t.Run("without a waiter", func(t *testing.T) {
		t.Parallel()
		atEachStage(t, "alone", func(t *testing.T, key string, stage int) {
			testRenewalAt(t, cluster, key, stage, false, core.WithFencing(true))
		})
	})
	t.Run("with a waiter", func(t *testing.T) {
		t.Parallel()
		atEachStage(t, "renewed", func(t *testing.T, key string, stage int) {
			testRenewalAt(t, cluster, key, stage, true)
		})
	})
	t.Run("of a shared lease", func(t *testing.T) {
		t.Parallel()
		atEachStage(t, "shared", func(t *testing.T, key string, stage int) {
			testRenewalAt(t, cluster, key, stage, false, core.WithShared(true))
		})
	})
}

func testRenewalAt(t *testing.T, cluster *redistest.Cluster, key string, stage int, hasWaiter bool, opts ...core.Option) {
	t.Helper()
	var renewals atomic.Int64
	holder := shortLocker(t, cluster, append(opts, core.WithObserver(func(event core.Event) {
		if event.Kind == core.Renewed && event.Err == nil {
			renewals.Add(1)
		}
	}))...)
	lease := lock(t, holder, key)
	var waiter chan grant
	if hasWaiter {
		waiter = startLock(t.Context(), shortLocker(t, cluster, opts...), key)
		awaitQueue(t, cluster, key, waiter)
	}
	m := beginMove(t, cluster, key)
	m.reach(t, stage)
	before := renewals.Load()
	suite.Eventually(t, "the lease was renewed for longer than its TTL", func() bool { return renewals.Load() > before+3 })
	m.finish()
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	if hasWaiter {
		next := suite.Receive(t, "the waiter is served", waiter)
		if next.err != nil {
			t.Fatal(next.err)
		}
		if err := next.lease.Release(t.Context()); err != nil {
			t.Errorf("release by the waiter: %v", err)
		}
	}
	checkLeftovers(t, cluster, key)
}

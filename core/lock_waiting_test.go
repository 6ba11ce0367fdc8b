package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// startWaiters starts n callers that wait for a key, and returns once all of them wait.
// wait returns once each of them has held the lock.
func startWaiters(t *testing.T, locks *core.Locker, events *recorder, key string, n int) (wait func()) {
	t.Helper()
	before := len(events.of(core.Waiting))
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			if err := locks.Do(t.Context(), key, func(context.Context) error { return nil }); err != nil {
				t.Errorf("waiter: %v", err)
			}
		})
	}
	suite.Eventually(t, "all callers wait", func() bool { return len(events.of(core.Waiting)) == before+n })
	return group.Wait
}

func testFullQueueRefusesAtOnce(t *testing.T, servers *deployment) {
	rdb := servers.Client(t)
	locks, events := servers.observed(t, rdb, core.WithMaxWaiters(3), core.WithMaxTotalWaiters(4))
	holder := servers.newLocker(t, rdb)
	a, b := lock(t, holder, "a"), lock(t, holder, "b")
	waitA := startWaiters(t, locks, events, "a", 3)

	_, err := locks.Lock(t.Context(), "a")
	wantError(t, err, core.ErrQueueFull)
	if refusal, ok := core.RefusalOf(err); !ok || refusal.HTTP != 429 || refusal.RetryAfter != time.Second {
		t.Errorf("refusal %+v", refusal)
	}
	waitB := startWaiters(t, locks, events, "b", 1)
	_, err = locks.Lock(t.Context(), "b")
	wantError(t, err, core.ErrOverloaded)
	if refusal, ok := core.RefusalOf(err); !ok || refusal.HTTP != 503 || refusal.RetryAfter != time.Second {
		t.Errorf("refusal %+v", refusal)
	}
	wantError(t, errorOf(locks.TryLock(t.Context(), "b")), core.ErrBusy)
	release(t, lock(t, locks, "free"))

	release(t, a)
	release(t, b)
	waitA()
	waitB()
	release(t, lock(t, locks, "a"))
}

// A view limits the waiters of its own callers.
func TestMaxWaitersOfAView(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	locks, events := observed(t, server.Client(t))
	held := lock(t, locks, "k")
	first := startLock(t, locks, "k")
	suite.Eventually(t, "a caller waits", func() bool { return len(events.of(core.Waiting)) > 0 })
	wantError(t, errorOf(locks.With(core.WithMaxWaiters(1)).Lock(t.Context(), "k")), core.ErrQueueFull)
	release(t, held)
	release(t, first())
}

func testLockPassesBetweenProcesses(t *testing.T, servers *deployment) {
	rdb, holders := servers.Client(t), servers.newLocker(t, servers.Client(t))
	locks, events := servers.observed(t, servers.Client(t))
	const turns = 5
	handed := 0
	var took []time.Duration
	// A waiter also checks Redis once a second. On a busy machine it may find the key
	// before the hand-off arrives, but not in most turns.
	for range turns {
		holder := lock(t, holders, "k")
		wait := startWaiters(t, locks, events, "k", 1)
		suite.Eventually(t, "the waiter is in the queue", func() bool {
			return rdb.LLen(t.Context(), servers.companion("k", "q")).Val() == 1
		})
		released := time.Now()
		release(t, holder)
		wait()
		took = append(took, time.Since(released))
		acquired := events.of(core.Acquired)
		if len(acquired) != len(took) {
			t.Fatalf("acquired: %+v", acquired)
		}
		if took[len(took)-1] < 900*time.Millisecond && acquired[len(took)-1].Grant == core.GrantHanded {
			handed++
		}
	}
	if handed <= turns/2 {
		t.Errorf("%d of %d turns were handed over, after %v: %+v", handed, turns, took, events.of(core.Acquired))
	}
}

// testFencesRise takes the lock several times after each loss of data, in two processes.
// It fails the test unless the fencing number rises each time.
func testFencesRise(t *testing.T, servers *deployment, losses ...func()) {
	lockers := []*core.Locker{
		servers.newLocker(t, servers.Client(t), core.WithFencing(true)),
		servers.newLocker(t, servers.Client(t), core.WithFencing(true)),
	}
	var last int64
	for _, lose := range losses {
		lose()
		for _, locks := range lockers {
			for range 2 {
				lease := lock(t, locks, "k")
				if lease.Fence() <= last {
					t.Errorf("fence %d after %d", lease.Fence(), last)
				}
				last = lease.Fence()
				release(t, lease)
			}
		}
	}
}

func testFencesRiseAfterLoss(t *testing.T, servers *deployment) {
	rdb := servers.Client(t)
	testFencesRise(t, servers,
		func() {},
		func() { rdb.Del(t.Context(), servers.companion("k", "f")) },
	)
	if life := rdb.PTTL(t.Context(), servers.companion("k", "f")).Val(); life < 6*24*time.Hour {
		t.Errorf("the counter lives for %v", life)
	}
}

func testNoFenceWithoutFencing(t *testing.T, servers *deployment) {
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb)
	lease := lock(t, locks, "k")
	if lease.Fence() != 0 || rdb.Exists(t.Context(), servers.companion("k", "f")).Val() != 0 {
		t.Errorf("fence %d", lease.Fence())
	}
	release(t, lease)
	var none *core.Lease
	if none.Fence() != 0 {
		t.Error("a nil lease has a fence")
	}
	fenced := lock(t, locks.With(core.WithFencing(true)), "k")
	if fenced.Fence() == 0 {
		t.Error("a view with fencing has none")
	}
	release(t, fenced)
}

// The user may not subscribe, so waiters depend on their timers.
func TestWaitersAreServedWithoutPubSub(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	if err := server.Client(t).Do(t.Context(), "ACL", "SETUSER", "nopubsub", "on", ">secret", "~*", "+@all",
		"-subscribe", "-publish", "resetchannels").Err(); err != nil {
		t.Fatal(err)
	}
	locks, events := observed(t, server.Client(t, as("nopubsub", "secret")))
	holder := lock(t, newLocker(t, server.Client(t, as("nopubsub", "secret"))), "k")
	wait := startWaiters(t, locks, events, "k", 3)
	release(t, holder)
	wait()
}

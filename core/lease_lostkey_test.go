package core_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Redis loses a key that is held, and another holder gets the lock. The first lease is lost
// at its next renewal. Its release does not touch the key of the second holder, and its
// fencing number is lower.
func TestLeaseIsLostWithItsKey(t *testing.T) {
	t.Parallel()
	const ttl = 4 * time.Second // renewed after 1.3 s
	lost := map[string]func(t *testing.T, server *redistest.Server, admin *redis.Client) (repair func()){
		"the server restarts without its data": func(_ *testing.T, server *redistest.Server, _ *redis.Client) func() {
			server.Restart()
			return func() {}
		},
		"the server is emptied": func(t *testing.T, _ *redistest.Server, admin *redis.Client) func() {
			return do(t, admin, "FLUSHALL")
		},
		"a client deletes the key": func(t *testing.T, _ *redistest.Server, admin *redis.Client) func() {
			return do(t, admin, "DEL", "reqlock:k")
		},
		"a client overwrites the key": func(t *testing.T, _ *redistest.Server, admin *redis.Client) func() {
			return do(t, admin, "SET", "reqlock:k", "foreign", "PX", 100)
		},
		"the server's clock jumps forward": func(t *testing.T, _ *redistest.Server, admin *redis.Client) func() {
			return do(t, admin, "PEXPIRE", "reqlock:k", 1)
		},
		"volatile-ttl evicts the key": evicts("volatile-ttl"),
		"allkeys-lru evicts the key":  evicts("allkeys-lru"),
	}
	for name, lose := range lost {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			events := &recorder{}
			first := lock(t, newLocker(t, server.Client(t), core.WithTTL(ttl), core.WithFencing(true), core.WithObserver(events.record)), "k")
			lose(t, server, server.Client(t))()
			second := lock(t, newLocker(t, server.Client(t), core.WithTTL(ttl), core.WithFencing(true)), "k")
			if second.Fence() <= first.Fence() {
				t.Errorf("fence %d after %d", second.Fence(), first.Fence())
			}
			suite.AwaitClosed(t, "the first lease is lost", first.Context().Done())
			wantError(t, context.Cause(first.Context()), core.ErrLost)
			suite.Eventually(t, "the observer receives the loss", func() bool { return len(events.of(core.Lost)) == 1 })
			wantError(t, first.Release(t.Context()), core.ErrLost)
			if holder := server.Client(t).Get(t.Context(), "reqlock:k").Val(); holder != second.Token() {
				t.Errorf("after the release of the first lease the key has the value %q", holder)
			}
			release(t, second)
		})
	}
}

// evicts returns a function that fills a server until the server has evicted the lock by a
// policy. repair lifts the memory limit.
func evicts(policy string) func(*testing.T, *redistest.Server, *redis.Client) func() {
	return func(t *testing.T, _ *redistest.Server, admin *redis.Client) func() {
		configured("maxmemory-policy", policy)(t, admin)
		configured("maxmemory", "4mb")(t, admin)
		filler := strings.Repeat("x", 4096)
		for i := 0; admin.Exists(t.Context(), "reqlock:k").Val() == 1; i++ {
			if i == 100_000 {
				t.Fatal("the lock is not evicted")
			}
			// The server replies OOM where it may not evict any other key.
			_ = admin.Set(t.Context(), "filler:"+time.Duration(i).String(), filler, 0).Err()
		}
		return func() { configured("maxmemory", "0")(t, admin) }
	}
}

// After the clock of a server fell back, keys live for longer, and renewals do not shorten
// the TTL. The lease is still valid only as long as the holder's clock says, and its
// release frees the key.
func TestReleaseFreesKeyAfterServerClockFellBack(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	admin := server.Client(t)
	events := &recorder{}
	const ttl = 4 * time.Second
	lease := lock(t, newLocker(t, server.Client(t), core.WithTTL(ttl), core.WithObserver(events.record)), "k")
	do(t, admin, "PEXPIRE", "reqlock:k", time.Hour.Milliseconds())
	suite.Eventually(t, "the lease is renewed", func() bool { return len(events.of(core.Renewed)) > 0 })
	if left := time.Until(lease.ValidUntil()); left > ttl || lease.Context().Err() != nil {
		t.Errorf("by the holder's clock the lease is valid for %v", left)
	}
	release(t, lease)
	if admin.Exists(t.Context(), "reqlock:k").Val() != 0 {
		t.Error("the key is still locked")
	}
}

// ValidUntil has a reading of the monotonic clock, however the lease was granted or
// extended. So a change of the wall clock does not move it.
func TestValidityUsesTheMonotonicClock(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks, events := observed(t, rdb, core.WithTTL(3*time.Second))
	wantMonotonic := func(what string, lease *core.Lease) {
		t.Helper()
		until := lease.ValidUntil()
		if until == until.Round(0) { //nolint:staticcheck // Equal does not see the reading
			t.Errorf("%s: %v has no reading of the monotonic clock", what, until)
		}
	}
	lease := lock(t, locks, "k")
	wantMonotonic("taken", lease)
	suite.Eventually(t, "the lease is renewed", func() bool { return len(events.of(core.Renewed)) > 0 })
	wantMonotonic("renewed", lease)
	noError(t, lease.Extend(t.Context(), time.Minute))
	wantMonotonic("extended", lease)
	waiter := startLock(t, locks, "k")
	suite.Eventually(t, "a caller waits", func() bool { return len(events.of(core.Waiting)) == 1 })
	release(t, lease)
	next := waiter()
	wantMonotonic("passed on", next)
	release(t, next)
}

// pollInterval is the pause between two polls that cost several commands or much memory.
const pollInterval = 20 * time.Millisecond

// Leases are renewed while their process takes and releases thousands of other locks.
func TestLeasesSurviveThousandsOfOtherLocks(t *testing.T) {
	t.Parallel()
	const ttl = 4 * time.Second
	server := redistest.Reuse(t)
	rdb := server.Client(t)
	locks, events := observed(t, rdb, core.WithTTL(ttl))
	held := make([]*core.Lease, 10)
	for i := range held {
		held[i] = lock(t, locks, fmt.Sprint("held", i))
	}
	var group sync.WaitGroup
	for g := range 16 {
		group.Go(func() {
			for i := range suite.Size(125, 500) {
				if err := locks.Do(t.Context(), fmt.Sprint("other", g, "-", i), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	begun := time.Now()
	suite.Eventually(t, "each lease is renewed after the other locks", suite.Every(pollInterval, func() bool {
		renewed := map[string]bool{}
		for _, event := range events.of(core.Renewed) {
			if event.Err == nil {
				renewed[event.Key.Raw()] = true
			}
		}
		return len(renewed) == len(held) && time.Since(begun) > ttl || len(events.of(core.Lost)) != 0
	}))
	for i, lease := range held {
		if lease.Context().Err() != nil || rdb.Get(t.Context(), fmt.Sprint("reqlock:held", i)).Val() != lease.Token() {
			t.Errorf("lease %d: %v", i, context.Cause(lease.Context()))
		}
		_, err := locks.TryLock(t.Context(), fmt.Sprint("held", i))
		wantError(t, err, core.ErrBusy)
		nested, err := locks.Lock(lease.Context(), fmt.Sprint("held", i))
		if err != nil || nested.Token() != lease.Token() {
			t.Errorf("lease %d does not nest: %v", i, err)
		}
		release(t, lease)
	}
	if lost := events.of(core.Lost); len(lost) != 0 {
		t.Errorf("%d leases were lost, the first: %+v", len(lost), lost[0])
	}
}

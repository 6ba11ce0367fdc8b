package core_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Callers of two processes wait for thousands of locks. Each process subscribes on one
// connection for each server. In the end there are no subscriptions.
func TestThousandsOfLocksLeaveNoSubscription(t *testing.T) {
	suite.Full(t, "waits until idle subscriptions end, after 5 s")
	t.Parallel()
	onKinds(t, func(t *testing.T, kind redistest.Kind) {
		const callers, turns, keys = 32, 50, 40
		servers := kind.Start(t) // the test counts the connections of all clients
		admin := servers.Client(t)
		locks := [2]*core.Locker{newLocker(t, servers.Client(t)), newLocker(t, servers.Client(t))}
		var most int
		var group sync.WaitGroup
		for i := range callers {
			group.Go(func() {
				for turn := range turns {
					key := strconv.Itoa((i/2 + turn) % keys) // two callers for each key at a time
					if err := locks[i%2].Do(t.Context(), key, func(context.Context) error {
						time.Sleep(time.Millisecond)
						return nil
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			group.Wait()
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			case <-time.After(pollInterval):
				_, connections := subscriptions(t, admin)
				most = max(most, connections)
			}
		}
		// A connection that was replaced may still be open beside the next one.
		if most == 0 || most > 2*len(locks) {
			t.Errorf("%d processes had %d subscribed connections to a server at a time", len(locks), most)
		}
		suite.Eventually(t, "all subscriptions end", suite.Every(pollInterval, func() bool {
			channels, connections := subscriptions(t, admin)
			return channels == 0 && connections == 0
		}))
	}, redistest.Kinds()...)
}

// pollInterval is the pause between two polls that cost several commands or much memory.
const pollInterval = 20 * time.Millisecond

// subscriptions returns how many channels of reqlock have subscribers on all masters, and
// the largest number of subscribed connections on one master.
func subscriptions(t *testing.T, admin redis.UniversalClient) (channels, connections int) {
	t.Helper()
	err := redistest.EachMaster(t.Context(), admin, func(master redis.Cmdable) error {
		for _, names := range [][]string{
			master.PubSubChannels(t.Context(), "*reqlock:*").Val(),
			master.PubSubShardChannels(t.Context(), "*reqlock:*").Val(),
		} {
			channels += len(names)
		}
		list, err := master.ClientList(t.Context()).Result()
		here := 0
		for line := range strings.Lines(list) {
			// Sentinels are subscribed to a channel of their own.
			subscribed := !strings.Contains(line, " sub=0 ") || strings.Contains(line, " ssub=") && !strings.Contains(line, " ssub=0 ")
			if subscribed && !strings.Contains(line, "name=sentinel-") {
				here++
			}
		}
		connections = max(connections, here)
		return err
	})
	noError(t, err)
	return channels, connections
}

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

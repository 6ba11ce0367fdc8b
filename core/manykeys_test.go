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
)

// Thousands of locks are waited for in two processes. Each of them listens on one
// connection for each server, and in the end on no channel.
//
//faults:row 28: after thousands of locks PUBSUB CHANNELS is empty
func TestThousandsOfLocksLeaveNoSubscription(t *testing.T) {
	t.Parallel()
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			const callers, turns, keys = 32, 50, 40
			servers := kind.Start(t)
			admin := servers.Client(t)
			locks := [2]*core.Locker{newLocker(t, servers.Client(t)), newLocker(t, servers.Client(t))}
			var most int
			var group sync.WaitGroup
			for i := range callers {
				group.Go(func() {
					for turn := range turns {
						key := strconv.Itoa((i/2 + turn) % keys) // two come for each at a time
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
				case <-time.After(time.Millisecond):
					_, connections := listening(t, admin)
					most = max(most, connections)
				}
			}
			// One that is replaced may still be there beside the next one.
			if most == 0 || most > 2*len(locks) {
				t.Errorf("%d connections to a server listened at a time, for %d processes", most, len(locks))
			}
			await(t, "nobody listens", func() bool {
				channels, connections := listening(t, admin)
				return channels == 0 && connections == 0
			})
		})
	}
}

// listening returns on how many channels of ours somebody listens on all masters,
// and the most connections that do so on one of them.
func listening(t *testing.T, admin redis.UniversalClient) (channels, connections int) {
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
			// Sentinels listen too, each on one channel of their own.
			subscribed := !strings.Contains(line, " sub=0 ") || strings.Contains(line, " ssub=") && !strings.Contains(line, " ssub=0 ")
			if subscribed && !strings.Contains(line, "name=sentinel-") {
				here++
			}
		}
		connections = max(connections, here)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return channels, connections
}

// A lease outlives thousands of others that come and go in its process.
//
//faults:row 33
func TestAHeldKeyIsRememberedThroughThousandsOfOthers(t *testing.T) {
	t.Parallel()
	const ttl = 4 * time.Second
	server := redistest.Start(t)
	rdb := server.Client(t)
	heard := &events{}
	locks := newLocker(t, rdb, core.WithTTL(ttl), core.WithObserver(heard.observe))
	held := make([]*core.Lease, 100)
	for i := range held {
		held[i] = lock(t, locks, fmt.Sprint("held", i))
	}
	var group sync.WaitGroup
	for g := range 16 {
		group.Go(func() {
			for i := range 500 {
				if err := locks.Do(t.Context(), fmt.Sprint("other", g, "-", i), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	begun := time.Now()
	await(t, "each is renewed after all of that", func() bool {
		renewed := map[string]bool{}
		for _, event := range heard.of(core.Renewed) {
			if event.Err == nil {
				renewed[event.Key.Raw()] = true
			}
		}
		return len(renewed) == len(held) && time.Since(begun) > ttl
	})
	for i, lease := range held {
		if lease.Context().Err() != nil || rdb.Get(t.Context(), fmt.Sprint("reqlock:held", i)).Val() != lease.Token() {
			t.Errorf("lease %d is forgotten: %v", i, context.Cause(lease.Context()))
		}
		_, err := locks.TryLock(t.Context(), fmt.Sprint("held", i))
		wantError(t, err, core.ErrBusy)
		nested, err := locks.Lock(lease.Context(), fmt.Sprint("held", i))
		if err != nil || nested.Token() != lease.Token() {
			t.Errorf("lease %d is not the outer one any more: %v", i, err)
		}
		release(t, lease)
	}
	if lost := heard.of(core.Lost); len(lost) != 0 {
		t.Errorf("%d leases were lost, the first: %+v", len(lost), lost[0])
	}
}

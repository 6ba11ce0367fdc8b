package core_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Two processes pass locks of all masters to each other. A waiter that misses the hand-off
// message finds the key by its timer. On a busy machine this may happen in up to half of the
// turns of a master, not in more.
func TestProcessesOnClusterHandOverLocks(t *testing.T) {
	t.Parallel()
	servers := shared(t, redistest.OnCluster)
	events := &recorder{}
	var lockers [2]*core.Locker
	for i := range lockers {
		lockers[i] = servers.newLocker(t, servers.Client(t, func(o *redis.UniversalOptions) { o.ReadTimeout = time.Second }),
			core.WithObserver(events.record))
	}
	rdb := servers.Client(t).(*redis.ClusterClient)
	handed, turns := make(map[string]int), make(map[string]int) // by the address of the master
	for i := 0; len(turns) < 3 || slices.Min(slices.Collect(maps.Values(turns))) < 16; i++ {
		key := fmt.Sprint("k", i)
		master, err := rdb.MasterForKey(t.Context(), servers.name(key))
		noError(t, err)
		addr := master.Options().Addr
		if turns[addr] == 16 { // of four keys
			continue
		}
		lease := lock(t, lockers[0], key)
		for turn := range 4 {
			waits := lockers[(turn+1)%2]
			next := startLock(t, waits, key)
			suite.Eventually(t, "the other process is in the queue", func() bool {
				return rdb.LLen(t.Context(), servers.companion(key, "q")).Val() == 1
			})
			release(t, lease)
			lease = next()
			turns[addr]++
			if got := events.of(core.Acquired); got[len(got)-1].Handover == core.Handed {
				handed[addr]++
			}
		}
		release(t, lease)
	}
	for addr, n := range turns {
		if handed[addr] < n/2 {
			t.Errorf("%s: %d of %d turns were handed over", addr, handed[addr], n)
		}
	}
}

package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// Two processes on a cluster hand the keys of all masters to and fro. Each hand-off
// is told: a waiter that lived by its timer would find the key for itself. So do a
// few on a busy machine, but not all those of one master.
func TestProcessesOnAClusterHandALockOver(t *testing.T) {
	cluster := redistest.StartCluster(t)
	heard := &events{}
	var lockers [2]*core.Locker
	for i := range lockers {
		lockers[i] = newLocker(t, cluster.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = time.Second }),
			core.WithObserver(heard.observe))
	}
	observer := cluster.Client(t)
	handed, turns := make(map[*redistest.Server]int), make(map[*redistest.Server]int)
	for i := range 12 {
		key := fmt.Sprintf("k%d", i)
		master := cluster.MasterOf("reqlock:" + key)
		lease := lock(t, lockers[0], key)
		for turn := range 4 {
			waits := lockers[(turn+1)%2]
			next := make(chan *core.Lease)
			go func() { next <- lock(t, waits, key) }()
			await(t, "one stands in line", func() bool {
				return observer.LLen(t.Context(), "{reqlock:"+key+"}:q").Val() == 1
			})
			release(t, lease)
			lease = <-next
			turns[master]++
			if got := heard.of(core.Acquired); got[len(got)-1].Handover == core.Handed {
				handed[master]++
			}
		}
		release(t, lease)
	}
	if len(turns) != 3 {
		t.Errorf("the keys are on %d masters", len(turns))
	}
	for master, n := range turns {
		if handed[master] < n/2 {
			t.Errorf("%s: %d of %d hand-offs were told", master.Addr(), handed[master], n)
		}
	}
}

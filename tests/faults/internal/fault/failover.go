package fault

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// someGrants is the number of grants that shows that the clients work.
const someGrants = 20

// disrupt injects a failure between grants. When it returns, locks are granted again. The
// inject function must leave the deployment healthy. It declares a loss of data itself; the
// loss must end before inject returns.
func (s *System) disrupt(name string, inject func()) {
	s.Helper()
	s.Workload.AwaitGrants(someGrants)
	end := s.Disrupt(name, nil)
	inject()
	end()
	s.Workload.AwaitGrants(someGrants)
}

// replaceServing runs inject, which replaces a master that still serves. Until that master
// has ended or is a replica, its writes may be lost. The writes of the new master are not.
func (s *System) replaceServing(name string, master *redistest.Server, lost Loss, inject func()) {
	s.Helper()
	client := master.Client(s, func(o *redis.Options) { o.MaxRetries, o.DialerRetries, o.ReadTimeout = -1, 1, time.Second })
	defer func() { _ = client.Close() }()
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	end := s.Disrupt(name, lost)
	watching.Go(func() {
		for ctx.Err() == nil && mayBeMaster(ctx, client) {
			s.sleep(pollInterval)
		}
		end()
	})
	inject()
}

// pauseMaster pauses a master until it is replaced. Then the old master continues.
func (s *System) pauseMaster(master *redistest.Server, lost Loss, servers replicated) {
	s.Helper()
	s.disrupt("a master is replaced", func() {
		s.during("a master is paused", lost, master.Pause)
		servers.AwaitFailover(master)
		s.awaitProgress()
		s.replaceServing("the old master continues", master, lost, func() {
			master.Resume()
			servers.Await()
		})
	})
}

// mayBeMaster reports whether a server may be a master. A server that does not answer may
// be one.
func mayBeMaster(ctx context.Context, server *redis.Client) bool {
	info, err := server.Info(ctx, "replication").Result()
	return !strings.Contains(info, "role:slave") && !errors.Is(err, syscall.ECONNREFUSED)
}

// isolateMaster makes the master accept writes that no replica has. If replicas must
// acknowledge leases, the master grants none.
func (s *System) isolateMaster(master *redistest.Server) {
	s.Helper()
	master.RefuseReplicas(true)
	s.awaitProgress()
}

// awaitProgress waits while the master may have too few replicas: for some grants, or for a
// time if replicas must acknowledge them.
func (s *System) awaitProgress() {
	s.Helper()
	if s.Replicas > 0 {
		s.runFor(1, 2)
		return
	}
	s.Workload.AwaitGrants(someGrants)
}

func (s *System) someProcess() int {
	processes := s.Workload.Processes()
	return processes[s.Random.IntN(len(processes))]
}

// A Loss reports whether data of a key, by its name in Redis, may be lost. It is nil if no
// data may be lost.
type Loss func(key string) bool

// everything is the loss of all keys.
func everything(string) bool { return true }

// only returns the loss of one key.
func only(lost string) Loss { return func(key string) bool { return key == lost } }

// lossOf returns the loss of writes that a master has confirmed and that its replicas may
// lack. It returns nil if all replicas must acknowledge a lease.
func (s *System) lossOf(what Loss) Loss {
	all := 2 // replicas of a master with Sentinels
	if s.Cluster != nil {
		all = 1
	}
	if s.Replicas >= all {
		return nil
	}
	return what
}

// slotsOf returns the loss of all keys that a master of a Cluster owns now.
func (s *System) slotsOf(master *redistest.Server) Loss {
	s.Helper()
	client := master.Client(s)
	defer func() { _ = client.Close() }()
	ranges, err := client.ClusterSlots(s.Context()).Result() //nolint:staticcheck // what clients of a cluster ask as well
	if err != nil {
		s.Fatalf("CLUSTER SLOTS of %s: %v", master.Addr(), err)
	}
	owned := map[int]bool{}
	for _, r := range ranges {
		for slot := r.Start; slot <= r.End; slot++ {
			owned[slot] = len(r.Nodes) > 0 && r.Nodes[0].Addr == master.Addr()
		}
	}
	return func(key string) bool { return owned[s.Cluster.Slot(key)] }
}

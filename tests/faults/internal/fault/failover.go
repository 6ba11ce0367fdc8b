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

// someGrants is how many grants show that the clients are at work: before something
// breaks, where it is broken for as long as one likes, and after it.
const someGrants = 20

// disrupt plays something that breaks amid the traffic of the clients, and returns
// when that has come back. What play leaves behind is the deployment in health. A
// loss it declares itself, which is over long before that.
func (s *System) disrupt(name string, inject func()) {
	s.Helper()
	s.Workload.AwaitGrants(someGrants)
	end := s.Disrupt(name, nil)
	inject()
	end()
	s.Workload.AwaitGrants(someGrants)
}

// replaceServing plays how a master is replaced that still serves. What it confirms may be
// lost until it has ended, or has become a replica; what the new one confirms is not.
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

// pauseMaster makes a master stand still until it is replaced, and go on then.
func (s *System) pauseMaster(master *redistest.Server, lost Loss, servers replicated) {
	s.Helper()
	s.disrupt("a master is replaced", func() {
		s.during("a master stands still", lost, master.Pause)
		servers.AwaitFailover(master)
		s.awaitProgress()
		s.replaceServing("the old master goes on", master, lost, func() {
			master.Resume()
			servers.Await()
		})
	})
}

// mayBeMaster reports whether a server may be a master: one that does not answer may be.
func mayBeMaster(ctx context.Context, server *redis.Client) bool {
	info, err := server.Info(ctx, "replication").Result()
	return !strings.Contains(info, "role:slave") && !errors.Is(err, syscall.ECONNREFUSED)
}

// isolateMaster makes sure that the master is told something that no replica knows. Where they
// have to acknowledge it, nobody is granted anything.
func (s *System) isolateMaster(master *redistest.Server) {
	s.Helper()
	master.RefuseReplicas(true)
	s.awaitProgress()
}

// awaitProgress lets the clients work for a while where a master may have too few replicas:
// until they were granted something, unless that has to be acknowledged.
func (s *System) awaitProgress() {
	s.Helper()
	if s.Replicas > 0 {
		s.runFor(1, 2)
		return
	}
	s.Workload.AwaitGrants(someGrants)
}

// someProcess chooses one of the client processes.
func (s *System) someProcess() int {
	processes := s.Workload.Processes()
	return processes[s.Random.IntN(len(processes))]
}

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

// traffic is how many grants show that the clients are at work: before something
// breaks, where it is broken for as long as one likes, and after it.
const traffic = 20

// broken plays something that breaks amid the traffic of the clients, and returns
// when that has come back. What play leaves behind is the deployment in health. A
// loss it declares itself, which is over long before that.
func (s *Scene) broken(name string, play func()) {
	s.Helper()
	s.Crew.AwaitGrants(traffic)
	end := s.Trouble(name, nil)
	play()
	end()
	s.Crew.AwaitGrants(traffic)
}

// losing plays how a master is replaced that still serves. What it confirms may be
// lost until it has ended, or has become a replica; what the new one confirms is not.
func (s *Scene) losing(name string, master *redistest.Server, lost Loss, play func()) {
	s.Helper()
	client := master.Client(s, func(o *redis.Options) { o.MaxRetries, o.DialerRetries, o.ReadTimeout = -1, 1, time.Second })
	defer func() { _ = client.Close() }()
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	end := s.Trouble(name, lost)
	watching.Go(func() {
		for ctx.Err() == nil && serves(ctx, client) {
			s.pass(look)
		}
		end()
	})
	play()
}

// stopMaster makes a master stand still until it is replaced, and go on then.
func (s *Scene) stopMaster(master *redistest.Server, lost Loss, servers replicated) {
	s.Helper()
	s.broken("a master is replaced", func() {
		s.during("a master stands still", lost, master.Pause)
		servers.AwaitFailover(master)
		s.goOn()
		s.losing("the old master goes on", master, lost, func() {
			master.Resume()
			servers.Await()
		})
	})
}

// serves reports whether a server may be a master: one that does not answer may be.
func serves(ctx context.Context, server *redis.Client) bool {
	info, err := server.Info(ctx, "replication").Result()
	return !strings.Contains(info, "role:slave") && !errors.Is(err, syscall.ECONNREFUSED)
}

// cutOff makes sure that the master is told something that no replica knows. Where they
// have to acknowledge it, nobody is granted anything.
func (s *Scene) cutOff(master *redistest.Server) {
	s.Helper()
	master.RefuseReplicas(true)
	s.goOn()
}

// goOn lets the clients work for a while where a master may have too few replicas:
// until they were granted something, unless that has to be acknowledged.
func (s *Scene) goOn() {
	s.Helper()
	if s.Replicas > 0 {
		s.linger(1, 2)
		return
	}
	s.Crew.AwaitGrants(traffic)
}

// someProcess chooses one of the client processes.
func (s *Scene) someProcess() int {
	processes := s.Crew.Processes()
	return processes[s.Random.IntN(len(processes))]
}

package conformance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// quorumTTL is the TTL of leases of a quorum, and for how long its servers do not vote after
// their start. A command may take a quarter of it.
var quorumTTL = shortLease + 2*time.Second

// A quorum is independent servers, with a client of each for the test.
type quorum []redis.UniversalClient

// A request runs under the lock of a quorum. While another process holds the lock, the answer
// asks the client to try again.
func TestEachFrameworkLocksAQuorum(t *testing.T) {
	t.Parallel()
	const majority = 2
	var servers []*redistest.Server
	var q quorum
	for range 2*majority - 1 {
		server := redistest.Start(t)
		server.Grant(redistest.QuorumRights)
		servers, q = append(servers, server), append(q, server.Client(t))
	}
	locks, other := newQuorumLocker(t, servers), newQuorumLocker(t, servers)
	t.Run("frameworks", func(t *testing.T) {
		for _, f := range frameworks() {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				account := theKey + " of " + f.name
				own := q.lock(t, locks, account)
				process, _, _ := strings.Cut(own.Token(), ":")
				q.release(t, own)
				e := &environment{T: t, f: f, locks: locks, ownTokens: process}
				s := e.serve(route{locks: []lock{{keys: []key{byHeader}}}, handler: func(c call) {
					lease, ok := c.Lease()
					if !ok || q.votes(t, lease) < majority {
						t.Error("the handler does not run under the lock")
					}
					c.Reply("done")
				}})
				r := request{keys: []string{account}}
				s.wantReply(r, "done")
				held := q.lock(t, other, account) // the request has released the lock
				s.wantRefusal(r, s.rowOf(refused(core.ErrBusy, time.Second)))
				q.release(t, held)
				s.wantReply(r, "done")
			})
		}
	})
}

func newQuorumLocker(t *testing.T, servers []*redistest.Server) *core.Locker {
	t.Helper()
	var clients []redis.UniversalClient
	for _, server := range servers {
		clients = append(clients, server.Client(t))
	}
	locks := core.Must(core.NewQuorum(clients, core.WithTTL(quorumTTL), core.WithCommandTimeout(quorumTTL/4)))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := locks.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return locks
}

// lock returns a lease with all votes. Servers that have just started do not vote yet.
func (q quorum) lock(t *testing.T, locks *core.Locker, key string) (lease *core.Lease) {
	t.Helper()
	suite.Eventually(t, "a majority votes for a lease", func() bool {
		var err error
		lease, err = locks.TryLock(t.Context(), key)
		if err != nil && !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrBusy) {
			t.Fatalf("TryLock: %v", err)
		}
		return err == nil
	})
	suite.Eventually(t, "all servers vote for the lease", func() bool { return q.votes(t, lease) == len(q) })
	return lease
}

// release releases a lease, on all servers.
func (q quorum) release(t *testing.T, lease *core.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
	suite.Eventually(t, "no server votes for the lease", func() bool { return q.votes(t, lease) == 0 })
}

// votes returns how many servers have the lease. It may be called from any goroutine.
func (q quorum) votes(t *testing.T, lease *core.Lease) (votes int) {
	t.Helper()
	for _, server := range q {
		token, err := server.Get(t.Context(), "reqlock:"+lease.Key()).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Errorf("GET: %v", err)
		}
		if token == lease.Token() {
			votes++
		}
	}
	return votes
}

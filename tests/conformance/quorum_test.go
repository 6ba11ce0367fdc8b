package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// quorumTTL is the TTL of leases of a quorum, and for how long its servers do not vote after
// their start.
const quorumTTL = 2 * time.Second

// A request runs under the lock of a quorum. While another process holds the lock, the answer
// asks the client to try again.
func TestEachFrameworkLocksAQuorum(t *testing.T) {
	t.Parallel()
	const majority = 2
	var servers [3]*redistest.Server
	for i := range servers {
		servers[i] = redistest.Reuse(t)
		servers[i].Grant(redistest.QuorumRights)
	}
	newProcess := func() (*core.Locker, []redis.UniversalClient) {
		var clients []redis.UniversalClient
		for _, server := range servers {
			clients = append(clients, server.Client(t))
		}
		locks := core.Must(core.NewQuorum(clients, core.WithTTL(quorumTTL), core.WithCommandTimeout(quorumTTL/4)))
		t.Cleanup(func() {
			if err := locks.Close(context.Background()); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		return locks, clients
	}
	locks, _ := newProcess()
	other, clients := newProcess()
	t.Run("frameworks", func(t *testing.T) {
		for _, f := range frameworks() {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				account := theKey + " of " + f.name
				own := lockEventually(t, locks, account)
				process, _, _ := strings.Cut(own.Token(), ":")
				if err := own.Release(t.Context()); err != nil {
					t.Errorf("Release: %v", err)
				}
				e := &environment{T: t, f: f, locks: locks, ownTokens: process}
				s := e.serve(route{locks: []lock{{keys: []key{byHeader}}}, handler: func(c call) {
					lease, _ := c.Lease()
					votes := 0
					for _, client := range clients {
						if client.Get(t.Context(), "reqlock:"+account).Val() == lease.Token() {
							votes++
						}
					}
					if votes < majority {
						t.Errorf("the handler runs with %d votes", votes)
					}
					c.Reply("done")
				}})
				held := lockEventually(t, other, account)
				r := request{keys: []string{account}}
				s.wantRefusal(r, s.rowOf(refused(core.ErrBusy, time.Second)))
				if err := held.Release(t.Context()); err != nil {
					t.Errorf("Release: %v", err)
				}
				s.wantReply(r, "done")
			})
		}
	})
}

// lockEventually returns a lease. The servers may have just started, so that they do not vote yet.
func lockEventually(t *testing.T, locks *core.Locker, key string) (lease *core.Lease) {
	t.Helper()
	suite.Eventually(t, "the servers vote for a lease", func() bool {
		var err error
		lease, err = locks.TryLock(t.Context(), key)
		return err == nil
	})
	return lease
}

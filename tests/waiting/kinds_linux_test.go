package waiting

import (
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// What happens to processes on a server alone happens to them on Sentinel and on
// Cluster too, most of it in one run.
func TestTheCrewOnSentinelAndOnCluster(t *testing.T) {
	for _, kind := range redistest.Kinds() {
		if kind == redistest.OnServer {
			continue // each has a test of its own
		}
		t.Run(kind.String(), func(t *testing.T) {
			servers := kind.Start(t)
			t.Run("nothing happens", func(t *testing.T) {
				s := scenario{
					orders: full(10*time.Second, 500*time.Millisecond, true), servers: servers, checks: inOrder(fairly(plain(), false)),
				}
				s.Shape.Turns = 60
				if _, h := s.play(t); h.lost() > 0 {
					t.Errorf("%d leases were lost", h.lost())
				}
			})
			t.Run("processes and the key suffer", func(t *testing.T) { suffers(t, servers) })
			t.Run("all data is lost", func(t *testing.T) {
				s := scenario{
					orders: full(shortTTL, shortBound, true), servers: servers, checks: afterLoss(),
					meanwhile: func(c *crew) { c.loseAll(0.3, 0.6) },
				}
				s.Shape.Turns = 60
				s.play(t)
			})
		})
	}
}

// suffers has subscriptions cut and fences deleted for a while, and then processes
// killed, robbed and halted.
func suffers(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	cuts, deleted := 0, int64(0)
	s := scenario{
		orders: full(shortTTL, shortBound, true), processes: crewSize + 2, servers: servers, checks: plain(),
		meanwhile: func(c *crew) {
			c.whileUntil(0.3, 10*time.Millisecond, func() {
				cuts += c.cutSubscriptions()
				deleted += c.admin.Del(c.t.Context(), fenceName).Val()
			})
			c.kill(1) // wherever it is
			c.enlist(crewSize, "TestWorker")
			c.lingering(2)
			c.kill(2) // while it holds
			c.enlist(crewSize+1, "TestWorker")
			c.takeAway(0)
			c.standStillInside(3) // the others may be done meanwhile
		},
	}
	s.Shape.Turns = 150
	s.play(t)
	t.Logf("%d subscriptions were cut, and the fence key was deleted %d times", cuts, deleted)
	if cuts < 4 || deleted == 0 {
		t.Errorf("%d subscriptions were cut, and the fence key was deleted %d times", cuts, deleted)
	}
}

// cutSubscriptions ends those of the workers on all servers, and returns how many.
func (c *crew) cutSubscriptions() (cuts int) {
	c.t.Helper()
	if c.admins == nil {
		for _, server := range c.servers.Servers() {
			c.admins = append(c.admins, server.Client(c.t))
		}
	}
	for _, admin := range c.admins {
		for client := range strings.Lines(admin.Do(c.t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").String()) {
			if id := clientID.FindStringSubmatch(client); id != nil && !strings.Contains(client, " name=sentinel-") {
				cuts += int(admin.ClientKillByFilter(c.t.Context(), "ID", id[1]).Val())
			}
		}
	}
	return cuts
}

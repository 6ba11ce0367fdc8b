package waiting

import (
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// On Sentinel and on Cluster three runs have most of what single servers have tests for.
func TestProcessesOnSentinelAndOnCluster(t *testing.T) {
	for _, kind := range redistest.Kinds() {
		if kind == redistest.OnServer {
			continue
		}
		t.Run(kind.String(), func(t *testing.T) {
			suite.Full(t, "repeats on each deployment what the fast tier runs on a single server")
			servers := kind.Start(t)
			t.Run("without faults", func(t *testing.T) {
				s := scenario{
					orders: newOrders(10*time.Second, 500*time.Millisecond, true, fewTurns), servers: servers,
					checks: basicChecks().withFairness(false).withOrder(),
				}
				if _, h := s.run(t); h.Lost() > 0 {
					t.Errorf("%d leases were lost", h.Lost())
				}
			})
			t.Run("faults of processes and keys", func(t *testing.T) { testFaults(t, servers) })
			t.Run("all data is lost", func(t *testing.T) {
				scenario{
					orders: newOrders(shortTTL, shortTimeout, true, fewTurns), servers: servers, checks: checksAfterLoss(),
					meanwhile: func(w *workers) { w.loseData(0.3, 0.6) },
				}.run(t)
			})
		})
	}
}

// testFaults cuts subscriptions and deletes fences for a while. Then it kills processes,
// overwrites the key of a process, and stops a process.
func testFaults(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	cuts, deleted := 0, int64(0)
	s := scenario{
		orders: newOrders(shortTTL, shortTimeout, true, 150), processes: processCount + 2, servers: servers, checks: basicChecks(),
		meanwhile: func(w *workers) {
			w.repeatUntil(0.3, 10*time.Millisecond, func() {
				cuts += w.cutSubscriptions()
				deleted += w.admin.Del(w.t.Context(), fenceName).Val()
			})
			w.kill(1) // in any state
			w.startOne(processCount, "TestWorker")
			w.linger(2)
			w.kill(2) // while it holds the lock
			w.startOne(processCount+1, "TestWorker")
			w.overwriteKey(0)
			w.stopHolder(3) // the other processes may finish meanwhile
		},
	}
	s.Size.Turns = 150
	s.run(t)
	t.Logf("%d subscriptions were cut, and the fence key was deleted %d times", cuts, deleted)
	if cuts < 4 || deleted == 0 {
		t.Errorf("%d subscriptions were cut, and the fence key was deleted %d times", cuts, deleted)
	}
}

// cutSubscriptions cuts the subscriptions of the workers on all servers, and returns how
// many.
func (w *workers) cutSubscriptions() (cuts int) {
	w.t.Helper()
	if w.admins == nil {
		for _, server := range w.servers.Servers() {
			w.admins = append(w.admins, server.Client(w.t))
		}
	}
	for _, admin := range w.admins {
		for client := range strings.Lines(admin.Do(w.t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").String()) {
			if id := clientID.FindStringSubmatch(client); id != nil && !strings.Contains(client, " name=sentinel-") {
				cuts += int(admin.ClientKillByFilter(w.t.Context(), "ID", id[1]).Val())
			}
		}
	}
	return cuts
}

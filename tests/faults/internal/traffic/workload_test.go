package traffic

import (
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/programtb"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic/client"
)

var _ fault.Workload = (*Workload)(nil)

// testTimeout is how long processes may take to end on a busy machine.
const testTimeout = 30 * time.Second

// startOnServer starts a workload on a server of its own.
func startOnServer(tb testing.TB, s Settings) (*Workload, *redistest.Server) {
	tb.Helper()
	servers := redistest.OnServer.Start(tb)
	s.Redis = servers.Options()
	return Start(tb, s), servers.Servers()[0]
}

// finish ends a workload and returns its history.
func finish(c *Workload) (h history.History) {
	c.tb.Helper()
	c.Finish(testTimeout)
	c.Fill(&h)
	return h
}

// blockFirstLock takes the only lock of the workload for good, and returns when all clients
// of a process wait for it without a bound.
func blockFirstLock(c *Workload, server *redistest.Server, process int) {
	c.tb.Helper()
	server.Client(c.tb).Set(c.tb.Context(), c.Keys()[0], "foreign", 0)
	suite.Eventually(c.tb, "all clients wait", func() bool { return len(unboundedWaits(c, process)) == c.settings.Clients })
}

// unboundedWaits returns the calls in which clients of a process wait without a bound.
func unboundedWaits(c *Workload, process int) []history.Op {
	return c.journal.calls(func(op history.Op) bool {
		return op.Process == process && op.Kind == history.Lock && op.Wait == 0 && op.Return == 0
	})
}

func TestARunOnEachDeployment(t *testing.T) {
	t.Parallel()
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			c := Start(t, Settings{Redis: kind.Start(t).Options(), Seed: uint64(kind)})
			c.AwaitGrants(200)
			if h := finish(c); len(h.Ops) < 400 {
				t.Errorf("%d calls", len(h.Ops))
			}
			if left := c.Processes(); len(left) > 0 {
				t.Errorf("%v are left", left)
			}
		})
	}
}

func TestProcessesDialByTheirRoutes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxies := map[int]*redistest.Proxy{0: redistest.NewProxy(t, server.Addr()), 1: redistest.NewProxy(t, server.Addr()), 2: redistest.NewProxy(t, server.Addr())}
	c := Start(t, Settings{
		Redis: redistest.Options{Addrs: []string{server.Addr()}}, Processes: 2,
		Routes: func(process int) map[string]string {
			return map[string]string{server.Addr(): proxies[process].Addr()}
		},
	})
	c.AwaitGrants(20)
	c.Kill(0)
	scripts := func(process int) int { return proxies[process].Commands()["EVALSHA"] }
	suite.Eventually(t, "all processes use their own routes", func() bool { return scripts(0) > 0 && scripts(1) > 0 && scripts(2) > 0 })
	before := scripts(0)
	c.AwaitGrants(20)
	if scripts(0) != before {
		t.Error("the route of the killed process is used")
	}
	finish(c)
}

func TestEachClientIsAwaited(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	proxy.Partition()
	c := Start(t, Settings{
		Redis: redistest.Options{Addrs: []string{server.Addr()}}, Processes: 2,
		Routes: func(process int) map[string]string {
			if process == 0 {
				return nil
			}
			return map[string]string{server.Addr(): proxy.Addr()}
		},
	})
	c.AwaitGrants(20) // of the first process
	proxy.Heal()
	c.AwaitEachClient()
	served := map[int]bool{}
	for _, op := range c.journal.calls(func(op history.Op) bool { return op.Kind != history.Begin && op.Outcome == history.Granted }) {
		served[op.Client] = true
	}
	if len(served) != 4 {
		t.Errorf("%d clients were granted a lock", len(served))
	}
	finish(c)
}

// Redis is unavailable until a client notices it.
func TestARunGoesOnWhenRedisIsBack(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct{ begin, end func(*redistest.Server) }{
		"it was killed":    {(*redistest.Server).Kill, (*redistest.Server).Restart},
		"it was paused":    {(*redistest.Server).Pause, (*redistest.Server).Resume},
		"it lost its data": {func(s *redistest.Server) { s.Kill(); s.Restart() }, func(*redistest.Server) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, server := startOnServer(t, Settings{})
			c.AwaitGrants(20)
			fault.begin(server)
			suite.Eventually(t, "a client notices it", func() bool {
				return len(c.journal.calls(func(op history.Op) bool { return op.Outcome == history.Unavailable || op.Outcome == history.Lost })) > 0
			})
			fault.end(server)
			c.AwaitGrants(100)
			finish(c)
		})
	}
}

// A process that cannot work fails the run, and says why.
func TestAProcessFailsByItself(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(*Workload){
		"while grants are awaited": func(c *Workload) { c.AwaitGrants(1) },
		"before the end":           func(c *Workload) { c.Finish(testTimeout) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := programtb.Run(t.Context(), name, func(tb testing.TB) {
				wait(Start(tb, Settings{TTL: time.Millisecond, Redis: redistest.Options{Addrs: []string{"127.0.0.1:1"}}}))
			})
			if !result.Failed || !strings.Contains(result.Log, "WithTTL") {
				t.Errorf("failed %v:\n%s", result.Failed, result.Log)
			}
		})
	}
}

func TestUnexpectedErrorFailsTheRun(t *testing.T) {
	t.Parallel()
	result := programtb.Run(t.Context(), t.Name(), func(tb testing.TB) {
		c := &Workload{tb: tb, journal: newJournal()}
		c.journal.record(client.Report{Call: 1, Op: history.Op{Kind: history.Try, Outcome: history.Busy, Error: "as usual"}})
		c.journal.record(client.Report{Call: 2, Op: history.Op{Kind: history.Lock, Outcome: history.Failed, Error: "out of hand"}})
		c.Finish(testTimeout)
	})
	if !result.Failed || !strings.Contains(result.Log, "out of hand") || strings.Contains(result.Log, "as usual") {
		t.Errorf("failed %v:\n%s", result.Failed, result.Log)
	}
}

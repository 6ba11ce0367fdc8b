package crew

import (
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/crew/client"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/stage"
)

var _ fault.Crew = (*Crew)(nil)

// enough is how long processes may take to end in a test, on a busy machine.
const enough = 30 * time.Second

// on starts a crew on a server of its own.
func on(tb testing.TB, s Settings) (*Crew, *redistest.Server) {
	tb.Helper()
	servers := redistest.OnServer.Start(tb)
	s.Redis = servers.Options()
	return Start(tb, s), servers.Servers()[0]
}

// finished ends a crew and returns its history.
func finished(c *Crew) (h history.History) {
	c.tb.Helper()
	c.Finish(enough)
	c.Fill(&h)
	return h
}

// await returns when the condition holds, or fails the test.
func await(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-ticker.C {
		if time.Now().After(deadline) {
			tb.Fatalf("not so in time: %s", what)
		}
	}
}

// hoarded takes the only lock of the crew away, for good, and returns when all of a
// process's clients wait for it without a bound.
func hoarded(c *Crew, server *redistest.Server, process int) {
	c.tb.Helper()
	server.Client(c.tb).Set(c.tb.Context(), c.Keys()[0], "foreign", 0)
	await(c.tb, "all clients wait", func() bool { return len(waiting(c, process)) == c.settings.Clients })
}

// waiting are the calls in which clients of a process wait without a bound.
func waiting(c *Crew, process int) []history.Op {
	return c.journal.calls(func(op history.Op) bool {
		return op.Process == process && op.Kind == history.Lock && op.Wait == 0 && op.Return == 0
	})
}

func TestARunOnEachDeployment(t *testing.T) {
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			c := Start(t, Settings{Redis: kind.Start(t).Options(), Seed: uint64(kind)})
			c.AwaitGrants(200)
			if h := finished(c); len(h.Ops) < 400 {
				t.Errorf("%d calls", len(h.Ops))
			}
			if left := c.Processes(); len(left) > 0 {
				t.Errorf("%v are left", left)
			}
		})
	}
}

func TestProcessesDialByTheirRoutes(t *testing.T) {
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
	await(t, "all processes use their own routes", func() bool { return scripts(0) > 0 && scripts(1) > 0 && scripts(2) > 0 })
	before := scripts(0)
	c.AwaitGrants(20)
	if scripts(0) != before {
		t.Error("the route of the dead is used")
	}
	finished(c)
}

// Redis is away for as long as it takes until somebody hears of it.
func TestARunGoesOnWhenRedisIsBack(t *testing.T) {
	for name, fault := range map[string]struct{ begin, end func(*redistest.Server) }{
		"it was killed":   {(*redistest.Server).Kill, (*redistest.Server).Restart},
		"it stood still":  {(*redistest.Server).Pause, (*redistest.Server).Resume},
		"it lost its all": {func(s *redistest.Server) { s.Kill(); s.Restart() }, func(*redistest.Server) {}},
	} {
		t.Run(name, func(t *testing.T) {
			c, server := on(t, Settings{})
			c.AwaitGrants(20)
			fault.begin(server)
			await(t, "somebody hears of it", func() bool {
				return len(c.journal.calls(func(op history.Op) bool { return op.Outcome == history.Unavailable || op.Outcome == history.Lost })) > 0
			})
			fault.end(server)
			c.AwaitGrants(100)
			finished(c)
		})
	}
}

// A process that cannot work fails the run, and says why.
func TestAProcessFailsByItself(t *testing.T) {
	for name, wait := range map[string]func(*Crew){
		"while grants are awaited": func(c *Crew) { c.AwaitGrants(1) },
		"before the end":           func(c *Crew) { c.Finish(enough) },
	} {
		t.Run(name, func(t *testing.T) {
			result := stage.Run(t.Context(), name, func(tb testing.TB) {
				wait(Start(tb, Settings{TTL: time.Millisecond, Redis: redistest.Options{Addrs: []string{"127.0.0.1:1"}}}))
			})
			if !result.Failed || !strings.Contains(result.Log, "WithTTL") {
				t.Errorf("failed %v:\n%s", result.Failed, result.Log)
			}
		})
	}
}

func TestAnErrorThatNobodyExpectsFailsTheRun(t *testing.T) {
	result := stage.Run(t.Context(), t.Name(), func(tb testing.TB) {
		c := &Crew{tb: tb, journal: newJournal()}
		c.journal.put(client.Report{Call: 1, Op: history.Op{Kind: history.Try, Outcome: history.Busy, Error: "as usual"}})
		c.journal.put(client.Report{Call: 2, Op: history.Op{Kind: history.Lock, Outcome: history.Failed, Error: "out of hand"}})
		c.Finish(enough)
	})
	if !result.Failed || !strings.Contains(result.Log, "out of hand") || strings.Contains(result.Log, "as usual") {
		t.Errorf("failed %v:\n%s", result.Failed, result.Log)
	}
}

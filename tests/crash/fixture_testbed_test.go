package crash

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/subprocess"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// waitTime is how long the service lets a request wait. No test waits that long: a client
// that does is an error.
const waitTime = 15 * time.Second

// leaseTime returns the TTL of the locks of a process that is not patient, which is also how
// long the lock of a killed process stays. A command may take a quarter of it, which the commit
// of a long answer needs on a busy machine. The TTL is longer with the race detector, which
// makes all code about ten times slower, and in the full tier, which runs beside other packages.
func leaseTime() time.Duration {
	if suite.Race || suite.IsFull() {
		return 4 * time.Second
	}
	return 1600 * time.Millisecond
}

// A testbed is a Redis server, the service processes on it, and what observes them.
type testbed struct {
	t         *testing.T
	framework framework
	orders    orders // of each process that is not patient, except its number
	server    *redistest.Server
	admin     *redis.Client
	ledger    *ledger
	monitor   *recordMonitor
	operator  *core.Locker // resolves unknown outcomes
	started   atomic.Int32
}

func newTestbed(t *testing.T, name string) *testbed {
	t.Helper()
	server := redistest.Start(t)
	s := &testbed{t: t, framework: frameworks[name], server: server, admin: server.Client(t), ledger: newLedger(t)}
	s.monitor = newRecordMonitor(t, server)
	s.operator = core.Must(core.New(server.Client(t), core.WithCommandTimeout(5*time.Second))) // a busy machine is slow
	t.Cleanup(func() { _ = s.operator.Close(context.Background()) })
	s.orders = orders{Framework: name, Ledger: s.ledger.server.URL, TTL: leaseTime(), Wait: waitTime, Command: leaseTime() / 4}
	return s
}

// patiently gives a process 5 s for each command, so that it sends no command twice on a busy
// machine. A second copy could restore a key that the test has deleted. The TTL is four times
// as long, because a command may take a quarter of it.
func patiently(o *orders) { o.Command, o.TTL = 5*time.Second, 20*time.Second }

func (s *testbed) start(t *testing.T, proxy *redistest.Proxy, changes ...func(*orders)) *process {
	t.Helper()
	if proxy == nil {
		proxy = redistest.NewProxy(t, s.server.Addr())
	}
	o := s.orders
	for _, change := range changes {
		change(&o)
	}
	o.Process = int(s.started.Add(1))
	return start(t, o, proxy)
}

// ask sends a request to a process. An error means that no complete answer came.
func (s *testbed) ask(p *process, q request) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), clientTime)
	defer cancel()
	a, err := s.framework.ask(ctx, p.addr(), q)
	a.Process = p.number
	if ctx.Err() != nil {
		s.t.Errorf("no answer after %v: %+v", clientTime, q)
	}
	return a, err
}

func (s *testbed) lock(q request) string { return "reqlock:i:" + s.framework.endpoint(q.policy, q.key) }

// forget says, as an operator, that a request did not take effect.
func (s *testbed) forget(ctx context.Context, q request) error {
	return s.resolveAs(ctx, q, core.NotDone())
}

// resolveAs says, as an operator, what became of a request.
func (s *testbed) resolveAs(ctx context.Context, q request, resolution core.Resolution) error {
	key := s.framework.endpoint(q.policy, q.key)
	seen, err := s.operator.ReadRecord(ctx, key)
	if err != nil {
		return err
	}
	return s.operator.Resolve(ctx, key, resolution, seen.Attempt)
}

func (s *testbed) isHeld(q request) bool {
	return s.admin.Exists(context.Background(), s.lock(q)).Val() > 0
}

// wantNoLocksLeft fails the test unless the locks expire or are released, and all other
// keys have a TTL.
func (s *testbed) wantNoLocksLeft(t *testing.T) {
	t.Helper()
	keys := func() (all []string) {
		all, err := s.admin.Keys(t.Context(), "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for _, key := range keys() {
		if s.admin.TTL(t.Context(), key).Val() == -1 {
			t.Errorf("%s has no TTL", key)
		}
	}
	var left []string
	suite.Eventually(t, "no lock is left", func() bool {
		left = nil
		for _, key := range keys() {
			if !strings.HasSuffix(key, ":r") && s.admin.Type(t.Context(), key).Val() == "string" {
				left = append(left, key)
			}
		}
		return len(left) == 0
	})
}

// A process is a service process. It is safe for concurrent use.
type process struct {
	*subprocess.Process
	t      *testing.T
	number int
	proxy  *redistest.Proxy // between this process alone and Redis
}

func start(t *testing.T, o orders, proxy *redistest.Proxy) *process {
	t.Helper()
	o.Redis = proxy.Addr()
	return &process{Process: subprocess.Start(t, "TestService", o), t: t, number: o.Process, proxy: proxy}
}

// events returns how many times the process has reported an event of an attempt's key.
func (p *process) events(event, key string) int { return p.Reports(event + " i:" + key) }

// addr returns the address at which the process serves, as soon as it does. It returns ""
// if the process has ended before.
func (p *process) addr() (addr string) {
	suite.Eventually(p.t, "the process serves", func() bool {
		addr, _ = p.ReportAfter(serving)
		return addr != "" || p.HasEnded()
	})
	return addr
}

// stop ends the process in order. It fails the test if the process reports a failure.
func (p *process) stop() {
	p.t.Helper()
	if err := p.Stop(); err != nil {
		p.t.Error(err)
	}
}

func TestMain(m *testing.M) { suite.Main(m) }

// patience bounds everything that has to happen. It is far longer than anything takes on a
// busy machine.
const patience = 30 * time.Second

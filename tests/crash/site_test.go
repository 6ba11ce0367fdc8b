package crash

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// waitTime is how long the service lets a request wait. It is never over unless
// somebody is stranded.
const waitTime = 15 * time.Second

// leaseTime returns the TTL of the service's locks: what a dead process holds is
// free after so long. A command may take a quarter of it.
func leaseTime() time.Duration {
	if raced() {
		return 2 * time.Second
	}
	return 800 * time.Millisecond
}

// A site is where services run, with the rest of their world.
type site struct {
	t         *testing.T
	framework framework
	orders    orders // of each process, but for its number
	server    *redistest.Server
	admin     *redis.Client
	ledger    *ledger
	witness   *witness
	operator  *core.Locker // who resolves
	started   atomic.Int32
}

// newSite opens a site for a framework.
func newSite(t *testing.T, name string) *site {
	t.Helper()
	server := redistest.Start(t)
	s := &site{t: t, framework: frameworks[name], server: server, admin: server.Client(t), ledger: newLedger(t)}
	s.witness = newWitness(t, server)
	s.operator = core.Must(core.New(server.Client(t)))
	t.Cleanup(func() { _ = s.operator.Close(context.Background()) })
	s.orders = orders{Framework: name, Ledger: s.ledger.server.URL, TTL: leaseTime(), Wait: waitTime}
	return s
}

// open starts a process, behind a proxy of its own if there is none.
func (s *site) open(t *testing.T, proxy *redistest.Proxy) *process {
	t.Helper()
	if proxy == nil {
		proxy = redistest.NewProxy(t, s.server.Addr())
	}
	o := s.orders
	o.Process = int(s.started.Add(1))
	return start(t, o, proxy)
}

// ask asks a process. An error is no answer.
func (s *site) ask(p *process, q question) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), clientTime)
	defer cancel()
	a, err := s.framework.ask(ctx, p.addr(), q)
	a.Process = p.number
	if ctx.Err() != nil {
		s.t.Errorf("a client was stranded: %+v", q)
	}
	return a, err
}

// lock returns the name of the lock of a question, in Redis.
func (s *site) lock(q question) string { return "reqlock:i:" + s.framework.endpoint(q.policy, q.key) }

// held reports whether the lock of a question is held, or was not given up.
func (s *site) held(q question) bool {
	return s.admin.Exists(context.Background(), s.lock(q)).Val() > 0
}

// wantTidy fails the test unless the locks and the lines go away by themselves,
// soon, and all that stays has a TTL.
func (s *site) wantTidy(t *testing.T) {
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
	await(t, "no lock is left", func() bool {
		left = nil
		for _, key := range keys() {
			if s.admin.Type(t.Context(), key).Val() == "string" {
				left = append(left, key)
			}
		}
		return len(left) == 0
	})
}

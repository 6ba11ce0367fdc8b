package redisstore

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A cutFixture is a store behind a proxy that cuts batches, and the cases of one lane. Each
// round sends the cases with new tokens.
type cutFixture struct {
	proxy  *redistest.Proxy
	direct *redis.Client
	store  *Store
	cases  []cutCase
	gate   sender // a command of the same lane, during which the batch gathers

	flushes bool      // the server loses the scripts just before the first batch
	fails   string    // the answer if the client cannot connect after the first cut; "": it can connect
	refuses bool      // with fails: the server refuses the password
	seen    time.Time // when the first batch reached the proxy

	mu      sync.Mutex
	failing bool
	conns   []net.Conn

	tokens   uint64
	fences   map[string]int64 // the last fencing number, by key
	lost     int              // how many answers were unknown
	asked    int64
	answered atomic.Int64
}

func newCutFixture(t *testing.T, cases []cutCase, gate sender) *cutFixture {
	t.Helper()
	server := redistest.Start(t)
	r := &cutFixture{
		proxy: redistest.NewProxy(t, server.Addr()), direct: server.Client(t),
		cases: cases, gate: gate, tokens: 1_000_000, fences: make(map[string]int64),
	}
	r.store = newStore(t, r.proxy.Client(t, storetest.ShortReads, func(o *redis.Options) {
		o.DisableIdentity = true
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		o.Dialer, o.DialerRetries = r.dial, 1
		o.Password = "any"                          // the server accepts any while it has none
		o.PoolSize, o.PipelinePoolSize = 1000, 1000 // after so many failed dials go-redis stops dialing for a while
	})).Store
	subscription := r.direct.Subscribe(t.Context(), "p:"+storetest.Bob)
	if _, err := subscription.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for range subscription.Channel() { // so that no messages accumulate
		}
	}()
	t.Cleanup(func() {
		_ = subscription.Close()
		suite.AwaitClosed(t, "the subscription ends", drained)
	})
	return r
}

// dial connects. If dials have to fail, it closes all connections first.
func (r *cutFixture) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing {
		for _, conn := range r.conns {
			_ = conn.Close()
		}
		r.conns = nil
		if !r.refuses {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		r.conns = append(r.conns, conn)
	}
	return conn, err
}

// fail makes new connections fail, if the fixture has fails, or succeed again.
func (r *cutFixture) fail(t *testing.T, on bool) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = on && r.fails != ""
	if r.refuses {
		password := ""
		if on {
			password = "another"
		}
		if err := r.direct.ConfigSet(t.Context(), "requirepass", password).Err(); err != nil {
			t.Error(err)
		}
	}
}

// request returns a request for a key, with a new token of the same length as all others with
// this limit.
func (r *cutFixture) request(key string, limit store.Limit) storetest.AnyRequest {
	r.tokens++
	q := storetest.Request(store.NewToken(storetest.Me, limit, r.tokens))
	q.Key, q.Limit = key, limit
	return q
}

// requests returns a request for each case.
func (r *cutFixture) requests() []storetest.AnyRequest {
	all := make([]storetest.AnyRequest, len(r.cases))
	for i, c := range r.cases {
		all[i] = r.request(c.key, c.limit)
		all[i].Join, all[i].Fences = c.join, c.fences
		if c.rejoin {
			all[i].Rejoin = r.request(c.key, c.limit).Token
		}
	}
	return all
}

// ask sends a request and returns a channel with its answers.
func (r *cutFixture) ask(do sender, q storetest.AnyRequest) <-chan result {
	answers := make(chan result, 8)
	r.asked++
	do(r.store, q, func(got result) {
		r.answered.Add(1)
		answers <- got
	})
	return answers
}

// within returns the next value of the channel. It fails the test if that takes longer than the
// bound of a request.
func within[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	over := time.NewTimer(storetest.Request("").Bound)
	defer over.Stop()
	select {
	case got := <-from:
		return got
	case <-over.C:
		t.Fatalf("%s: nothing within the bound", what)
		panic("unreachable")
	}
}

// sendAsBatch sends the requests while their lane waits for another command, so that they leave
// as one batch.
func (r *cutFixture) sendAsBatch(t *testing.T, requests []storetest.AnyRequest) []<-chan result {
	t.Helper()
	release, held := r.proxy.HoldCommand(func(command []string) bool { return slices.Contains(command, "p:gate") })
	gate := r.ask(r.gate, r.request("gate", store.Exclusive))
	within(t, "the gate", held)
	answers := make([]<-chan result, len(requests))
	for i, q := range requests {
		answers[i] = r.ask(r.cases[i].do, q)
	}
	release()
	within(t, "the gate", gate)
	return answers
}

// begin is called when the first batch has reached the proxy.
func (r *cutFixture) begin(t *testing.T) {
	t.Helper()
	r.seen = time.Now()
	r.fail(t, true)
	if r.flushes {
		if err := r.direct.ScriptFlush(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	}
}

package redisstore

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A ring is where batches are cut, round after round: a store behind a proxy,
// and the bids of one lane, which are made anew in each round, with new tokens.
type ring struct {
	proxy  *redistest.Proxy
	direct *redis.Client
	store  *Store
	bids   []bid
	gate   asks // a command of the same lane

	flushes bool      // the server forgets the scripts just before the first batch
	fails   string    // what is told where no connection is had once the first batch was cut; "": one is
	refuses bool      // then: the server is there, but does not let the client in
	seen    time.Time // when the first batch was on its way

	mu      sync.Mutex
	failing bool
	conns   []net.Conn

	tokens int
	fences map[string]int64 // the last number that was told, by key
	lost   int              // how many were told that nothing is known
	asked  int64
	told   atomic.Int64
}

func newRing(t *testing.T, bids []bid, gate asks) *ring {
	t.Helper()
	if laneWidth() < len(bids) {
		t.Skip("the linked lanes are too narrow for the batch")
	}
	server := redistest.Start(t)
	r := &ring{
		proxy: redistest.NewProxy(t, server.Addr()), direct: server.Client(t),
		bids: bids, gate: gate, tokens: 1_000_000, fences: make(map[string]int64),
	}
	r.store = newStore(t, r.proxy.Client(t, storetest.ShortReads, func(o *redis.Options) {
		o.DisableIdentity = true
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		o.Dialer, o.DialerRetries = r.dial, 1
		o.Password = "any"                          // which will do while the server has none
		o.PoolSize, o.PipelinePoolSize = 1000, 1000 // dials that fail before go-redis dials no more for a while
	})).Store
	listening := r.direct.Subscribe(t.Context(), "p:"+storetest.Bob)
	if _, err := listening.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for range listening.Channel() { // so that nothing piles up
		}
	}()
	t.Cleanup(func() {
		_ = listening.Close()
		<-heard
	})
	return r
}

// dial connects. Where that is to fail, all connections are gone by then.
func (r *ring) dial(ctx context.Context, network, addr string) (net.Conn, error) {
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

// fail makes connections fail, if this is the ring for it, or work again.
func (r *ring) fail(t *testing.T, on bool) {
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

// request returns one for a key, with a token that was never used, and that is
// as long as all others.
func (r *ring) request(key string) storetest.AnyRequest {
	r.tokens++
	q := storetest.Request(fmt.Sprintf("%s:%d", storetest.Me, r.tokens))
	q.Key = key
	return q
}

// requests returns one for each bid.
func (r *ring) requests() []storetest.AnyRequest {
	all := make([]storetest.AnyRequest, len(r.bids))
	for i, b := range r.bids {
		all[i] = r.request(b.key)
		all[i].Join, all[i].Fences = b.join, b.fences
		if b.rejoin {
			all[i].Rejoin = r.request(b.key).Token
		}
	}
	return all
}

// ask asks, and returns where the answer comes.
func (r *ring) ask(do asks, q storetest.AnyRequest) <-chan told {
	answers := make(chan told, 8)
	r.asked++
	do(r.store, q, func(a told) {
		r.told.Add(1)
		answers <- a
	})
	return answers
}

// within waits for what has to come within the bound of a request.
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

// gather makes all requests while their lane waits for another command, so that
// they leave as one batch.
func (r *ring) gather(t *testing.T, requests []storetest.AnyRequest) []<-chan told {
	t.Helper()
	let, held := r.proxy.HoldCommand(func(command []string) bool { return slices.Contains(command, "p:gate") })
	gate := r.ask(r.gate, r.request("gate"))
	within(t, "the gate", held)
	answers := make([]<-chan told, len(requests))
	for i, q := range requests {
		answers[i] = r.ask(r.bids[i].do, q)
	}
	let()
	within(t, "the gate", gate)
	return answers
}

// begin is called when the first batch is on its way to the server.
func (r *ring) begin(t *testing.T) {
	t.Helper()
	r.seen = time.Now()
	r.fail(t, true)
	if r.flushes {
		if err := r.direct.ScriptFlush(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	}
}

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

// A cutFixture is a store behind a proxy that cuts batches, and the cases of one lane.
type cutFixture struct {
	proxy   *redistest.Proxy
	direct  *redis.Client
	store   *Store
	cases   []cutCase
	flushes bool // the server loses the scripts just before the first batch
	refuses bool // the client cannot connect after the first cut

	mu      sync.Mutex
	failing bool
	conns   []net.Conn

	tokens   uint64
	fences   map[string]int64 // the last fencing number, by key
	lost     int              // how many answers were unknown
	asked    int64
	answered atomic.Int64
}

func newCutFixture(t *testing.T, cases []cutCase) *cutFixture {
	t.Helper()
	server := redistest.Start(t)
	r := &cutFixture{
		proxy: redistest.NewProxy(t, server.Addr()), direct: server.Client(t), cases: cases,
		tokens: 1_000_000, fences: make(map[string]int64),
	}
	r.store = newStore(t, r.proxy.Client(t, storetest.ShortReads, func(o *redis.Options) {
		o.DisableIdentity = true
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		o.Dialer, o.DialerRetries = r.dial, 1
		o.PoolSize, o.PipelinePoolSize = 1000, 1000 // after so many failed dials go-redis stops dialing for a while
	})).Store
	bob := r.direct.Subscribe(t.Context(), "p:"+storetest.Bob)
	if _, err := bob.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for range bob.Channel() { // so that no messages accumulate
		}
	}()
	t.Cleanup(func() {
		_ = bob.Close()
		suite.AwaitClosed(t, "the subscription ends", drained)
	})
	return r
}

// dial connects. While dials have to fail, it closes all connections.
func (r *cutFixture) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing {
		for _, conn := range r.conns {
			_ = conn.Close()
		}
		r.conns = nil
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	r.conns = append(r.conns, conn)
	return conn, err
}

func (r *cutFixture) fail(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = on && r.refuses
}

// A cutResult is the answer to a request of a batch.
type cutResult struct {
	outcome
	err    error
	since  time.Time
	fences block
	at     time.Time // when the answer arrived
}

// A sender sends a request and reports the answer.
type sender func(*Store, storetest.AnyRequest, func(cutResult))

func reportAnswer(report func(cutResult)) func(store.Answer, error) {
	return func(a store.Answer, err error) {
		report(cutResult{outcome{
			granted: a.Granted, waiting: a.Waiting, holder: a.Holder, foreign: a.ForeignHolder, shared: a.Shared,
			verdict: a.Verdict, record: string(a.Record), number: a.Number, running: a.Running, unreported: a.Unreported,
		}, err, a.Since, block{a.Fence, int64(a.Fences)}, time.Now()})
	}
}

func sendTake(s *Store, r storetest.AnyRequest, report func(cutResult)) {
	s.Take(r.Take(), reportAnswer(report))
}

func sendEnqueue(s *Store, r storetest.AnyRequest, report func(cutResult)) {
	s.Enqueue(r.Enqueue(), reportAnswer(report))
}

func sendBegin(s *Store, r storetest.AnyRequest, report func(cutResult)) {
	if r.Attempt == nil {
		r.Attempt = storetest.AttemptRequest("").Attempt
	}
	sendEnqueue(s, r, report)
}

func sendRenew(s *Store, r storetest.AnyRequest, report func(cutResult)) {
	s.Renew(r.Renew(), func(a store.Renewal, err error) {
		report(cutResult{outcome{granted: a.Held, waiting: a.Waiting}, err, a.Since, block{a.Fence, int64(a.Fences)}, time.Now()})
	})
}

func sendRelease(s *Store, r storetest.AnyRequest, report func(cutResult)) {
	s.Release(r.Release(), func(a store.ReleaseResult, err error) {
		report(cutResult{outcome{status: a.Status, stored: a.Record}, err, a.Since, block{}, time.Now()})
	})
}

func sendFinish(ending store.Ending) sender {
	return func(s *Store, r storetest.AnyRequest, report func(cutResult)) {
		r.Attempt, r.Ending, r.Record = storetest.AttemptRequest("").Attempt, ending, []byte(storetest.Record)
		sendRelease(s, r, report)
	}
}

// ask sends a request and returns a channel with its answers.
func (r *cutFixture) ask(do sender, q storetest.AnyRequest) <-chan cutResult {
	answers := make(chan cutResult, 8)
	r.asked++
	do(r.store, q, func(got cutResult) {
		r.answered.Add(1)
		answers <- got
	})
	return answers
}

// request returns a request for a key. All its tokens with one limit have the same length.
func (r *cutFixture) request(key string, change func(*storetest.AnyRequest)) storetest.AnyRequest {
	q := storetest.AttemptRequest("")
	q.Key = key
	if change != nil {
		change(&q)
	}
	if q.Attempt != nil && !q.Attempt.Rerun {
		q.Attempt = nil
	}
	if q.Rejoin != "" {
		q.Rejoin = store.NewToken(storetest.Me, q.Limit, r.tokens+1)
	}
	q.Token = store.NewToken(storetest.Me, q.Limit, r.tokens)
	r.tokens += 2
	return q
}

// sendAsBatch sends the requests while their lane waits for another command, so that they leave
// as one batch.
func (r *cutFixture) sendAsBatch(t *testing.T, requests []storetest.AnyRequest) []<-chan cutResult {
	t.Helper()
	release, held := r.proxy.HoldCommand(func(command []string) bool { return slices.Contains(command, "p:gate") })
	gate := r.ask(r.cases[0].do, r.request("gate", nil))
	suite.Receive(t, "the gate is held", held)
	answers := make([]<-chan cutResult, len(requests))
	for i, q := range requests {
		answers[i] = r.ask(r.cases[i].do, q)
	}
	release()
	suite.Receive(t, "the gate", gate)
	return answers
}

// withTokens returns the state with the tokens of the request.
func withTokens(text string, q *storetest.AnyRequest) storetest.State {
	s := stateOf(text)
	replace := func(token string) string {
		switch token {
		case storetest.Me1:
			return q.Token
		case storetest.Me2:
			return q.Rejoin
		}
		return token
	}
	s.Value = replace(s.Value)
	for i, token := range s.Queue {
		s.Queue[i] = replace(token)
	}
	if s.Record != nil {
		s.Record["t"] = replace(s.Record["t"])
	}
	shared := make(leases, len(s.Shared))
	for token, left := range s.Shared {
		shared[replace(token)] = left
	}
	s.Shared = shared
	return s
}

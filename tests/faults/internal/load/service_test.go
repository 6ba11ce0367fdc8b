package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// ttl is the TTL of all leases. It is much longer than Redis is down.
var ttl = time.Duration(suite.Size(6, 15)) * time.Second

const (
	longWait  = 30 * time.Second
	shortWait = 500 * time.Millisecond

	// handlerTime is the duration of a handler.
	handlerTime = 10 * time.Millisecond
)

// The routes of a service. The path of a request contains its account, and the header
// Request its number.
const (
	longWaitRoute   = "POST /long-wait/{account}"
	shortWaitRoute  = "POST /short-wait/{account}"
	idempotentRoute = "POST /idempotent/{account}"
)

// A service is what its instances share: the accounts and the gate.
type service struct {
	gate        chan struct{} // closed when all requests have arrived
	restored    chan struct{} // closed when Redis is back for the first time
	ignoresLoss bool          // handlers that sleep do not check whether they still hold their lock

	openGate, endSleep func() // close the gate channel, and restored

	inFlight, most, sleeping atomic.Int64
	slept                    atomic.Int64 // how many handlers have begun to sleep

	mu           sync.Mutex
	accounts     map[string]*account
	runs         map[string]int  // completed handlers of each request
	lostKeys     map[string]bool // the keys of leases that were lost
	lostAttempts map[string]bool // requests whose attempt lost its lease
}

func newService(stubborn bool) *service {
	b := &service{
		gate: make(chan struct{}), restored: make(chan struct{}), ignoresLoss: stubborn,
		accounts: map[string]*account{}, runs: map[string]int{}, lostKeys: map[string]bool{}, lostAttempts: map[string]bool{},
	}
	b.openGate = sync.OnceFunc(func() { close(b.gate) })
	b.endSleep = sync.OnceFunc(func() { close(b.restored) })
	return b
}

// observe records the keys of lost leases.
func (b *service) observe(e core.Event) {
	if e.Kind != core.Lost {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lostKeys[e.Key.Raw()] = true
}

func (b *service) account(name string) *account {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.accounts[name] == nil {
		b.accounts[name] = &account{overlapped: make(chan struct{})}
	}
	return b.accounts[name]
}

// accountsPerSleeper is the number of accounts for each account whose first handler sleeps.
const accountsPerSleeper = 10

// handle is the handler: it adds one to its account. The first handler of some accounts
// still runs when Redis is back.
func (b *service) handle(w http.ResponseWriter, r *http.Request) {
	lease, _ := nethttplock.FromContext(r.Context())
	name := r.PathValue("account")
	a := b.account(name)
	plain, fenced, first := a.enter(lease.Fence())
	var relies bool
	if number, err := strconv.Atoi(name); first && err == nil && number%accountsPerSleeper == 0 {
		relies = b.sleep(r.Context(), a) || b.ignoresLoss
	} else {
		time.Sleep(handlerTime)
		relies = r.Context().Err() == nil
	}
	a.leave(plain+1, fenced+1, lease.Fence(), relies)
	request := r.Header.Get("Request")
	b.mu.Lock()
	b.runs[request]++
	b.mu.Unlock()
	_, _ = fmt.Fprint(w, request)
}

// sleep returns some time after Redis is back. It reports whether the lock is still held.
// If the service ignores losses, sleep waits until another handler runs for the account,
// for as long as requests wait.
func (b *service) sleep(ctx context.Context, a *account) bool {
	b.slept.Add(1)
	b.sleeping.Add(1)
	defer b.sleeping.Add(-1)
	notified, more := ctx.Done(), ttl/2
	if b.ignoresLoss {
		notified, more = nil, longWait
	}
	select {
	case <-b.restored:
	case <-notified:
	}
	select {
	case <-time.After(more):
	case <-a.overlapped:
	case <-notified:
	}
	return ctx.Err() == nil
}

// recordLostAttempt runs between an attempt and the lock inside it. The wait for that lock
// ends if the attempt loses its lease.
func (b *service) recordLostAttempt(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		if errors.Is(context.Cause(r.Context()), core.ErrLost) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.lostAttempts[r.Header.Get("Request")] = true
		}
	})
}

// gated runs before the middlewares, and holds all requests back until the gate is open.
func (b *service) gated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := b.inFlight.Add(1)
		defer b.inFlight.Add(-1)
		for most := b.most.Load(); now > most && !b.most.CompareAndSwap(most, now); {
			most = b.most.Load()
		}
		select {
		case <-b.gate:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// An instance is a process of the service.
type instance struct {
	http  *httptest.Server
	locks *core.Locker
	redis *redis.Client
	conns atomic.Int64
}

func startInstance(t *testing.T, b *service, server *redistest.Server, number int) *instance {
	t.Helper()
	s := &instance{redis: server.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = number%2 == 0 })}
	s.locks = core.Must(core.New(s.redis, core.WithTTL(ttl), core.WithFencing(true), core.WithObserver(b.observe)))
	lock := func(wait time.Duration) http.Handler {
		return nethttplock.Middleware(s.locks, nethttplock.PathValue("account"), core.WithWait(wait))(http.HandlerFunc(b.handle))
	}
	once := nethttplock.Idempotent(s.locks, nethttplock.IdempotencyKey(), core.WithWait(longWait), core.WithRetention(10*time.Minute))
	mux := http.NewServeMux()
	mux.Handle(longWaitRoute, lock(longWait))
	mux.Handle(shortWaitRoute, lock(shortWait))
	mux.Handle(idempotentRoute, once(b.recordLostAttempt(lock(longWait))))

	s.http = httptest.NewUnstartedServer(b.gated(mux))
	s.http.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.conns.Add(-1)
		default:
		}
	}
	s.http.Start()
	t.Cleanup(s.http.Close)
	// Close waits for the handlers. If the test has failed, they still wait for these
	// channels.
	t.Cleanup(func() { b.openGate(); b.endSleep() })
	return s
}

// closeTimeout bounds the close of an instance.
const closeTimeout = 60 * time.Second

// close shuts the instance down gracefully.
func (s *instance) close(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), closeTimeout)
	defer cancel()
	if err := s.http.Config.Shutdown(ctx); err != nil {
		t.Errorf("shut down the server: %v", err)
	}
	if err := s.locks.Close(ctx); err != nil {
		t.Errorf("close the Locker: %v", err)
	}
	_ = s.redis.Close()
}

package load

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// ttl is the TTL of all leases. It is much longer than Redis is down.
var ttl = time.Duration(suite.Size(6, 15)) * time.Second

const (
	longWait    = 30 * time.Second
	shortWait   = 500 * time.Millisecond
	handlerTime = 10 * time.Millisecond
)

// A service is what its instances share.
type service struct {
	gate     chan struct{} // closed when all requests have arrived
	restored chan struct{} // closed when Redis is back for the first time

	inFlight, sleeping, lostLeases atomic.Int64

	mu       sync.Mutex
	inside   map[string]int // handlers that run, by account
	entered  map[string]int
	overlaps int
	runs     map[string]int // handlers that have ended, by the name of the request
}

func newService() *service {
	return &service{
		gate: make(chan struct{}), restored: make(chan struct{}),
		inside: map[string]int{}, entered: map[string]int{}, runs: map[string]int{},
	}
}

// handle is the handler. The first handler of each tenth account still runs when Redis is
// back, unless it loses its lock.
func (s *service) handle(w http.ResponseWriter, r *http.Request) {
	account, name := r.PathValue("account"), r.Header.Get("Request")
	s.mu.Lock()
	if s.inside[account]++; s.inside[account] > 1 {
		s.overlaps++
	}
	s.entered[account]++
	isFirst := s.entered[account] == 1
	s.mu.Unlock()
	if isFirst && strings.HasSuffix(account, "0") {
		s.sleeping.Add(1)
		s.sleep(r.Context())
	} else {
		time.Sleep(handlerTime)
	}
	s.mu.Lock()
	s.inside[account]--
	s.runs[name]++
	s.mu.Unlock()
	_, _ = fmt.Fprint(w, name)
}

// sleep returns some time after Redis is back, or when the lock is lost.
func (s *service) sleep(ctx context.Context) {
	select {
	case <-s.restored:
		select {
		case <-time.After(ttl / 2):
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
}

// gated holds requests back until the gate is open.
func (s *service) gated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.inFlight.Add(1)
		defer s.inFlight.Add(-1)
		select {
		case <-s.gate:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// An instance is a process of the service.
type instance struct {
	http  *httptest.Server
	locks *core.Locker
}

func newInstance(t *testing.T, s *service, server *redistest.Server) *instance {
	t.Helper()
	locks := core.Must(core.New(server.Client(t), core.WithTTL(ttl), core.WithObserver(func(e core.Event) {
		if e.Kind == core.Lost {
			s.lostLeases.Add(1)
		}
	})))
	lock := func(wait time.Duration) http.Handler {
		return nethttplock.Middleware(locks, nethttplock.PathValue("account"), core.WithWait(wait))(http.HandlerFunc(s.handle))
	}
	once := nethttplock.Idempotent(locks, nethttplock.IdempotencyKey(), core.WithWait(longWait))
	mux := http.NewServeMux()
	mux.Handle("POST /long-wait/{account}", lock(longWait))
	mux.Handle("POST /short-wait/{account}", lock(shortWait))
	mux.Handle("POST /payment/{account}", once(http.HandlerFunc(s.handle)))
	return &instance{httptest.NewServer(s.gated(mux)), locks}
}

// close ends the instance, which has nothing to do.
func (i *instance) close(t *testing.T) {
	t.Helper()
	i.http.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := i.locks.Close(ctx); err != nil {
		t.Errorf("close the Locker: %v", err)
	}
}

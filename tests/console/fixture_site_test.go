package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/console"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/registry"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

const (
	prefix   = "/admin/locks/"
	rows     = 200
	outcomes = 5
	hot      = "account:ada"
)

// A site is a Console of a service with two processes: pod-1 holds many locks, and pod-2 waits for one.
type site struct {
	url               string
	rdb               redis.UniversalClient
	inspector         *inspect.Inspector
	holder, waiter    *core.Locker
	lock, first, last string          // digests: of the lock that pod-2 waits for, and of unknown outcomes
	lost              <-chan struct{} // of the lease of that lock
	next              <-chan *core.Lease
}

// must returns the result of a call. It fails the test if the call has failed.
func must[T any](result T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
}

// newLocker returns a Locker that is closed at the end of the test.
func newLocker(t *testing.T, rdb redis.UniversalClient) *core.Locker {
	t.Helper()
	locks := must(core.New(rdb, core.WithLogger(nil)))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = locks.Close(ctx) // leases were ended
	})
	return locks
}

// newSite starts the service and its Console, with all actions.
func newSite(t *testing.T) *site {
	t.Helper()
	ctx := t.Context()
	s := &site{rdb: redistest.Reuse(t).Client(t)}
	s.inspector, s.holder, s.waiter = must(inspect.New(s.rdb, inspect.WithObserver(func(core.Event) {})))(t), newLocker(t, s.rdb), newLocker(t, s.rdb)
	pages := must(console.New(s.inspector,
		console.WithActions(console.Revoke, console.FreeNow, console.Resolve),
		console.WithActor(func(*http.Request) string { return "ada" })))(t)
	mux := http.NewServeMux()
	mux.Handle(prefix, http.StripPrefix(prefix, pages))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL + prefix

	holder := registry.Process{Service: "bank", Host: "pod-1", Version: "v1.4.0", PID: 4242}
	var leases []*core.Lease
	for n := range rows {
		lease := must(s.holder.Lock(ctx, fmt.Sprint("account:", n)))(t)
		leases = append(leases, lease)
		if n < 20 {
			holder.Holds = append(holder.Holds, registry.Hold{Digest: s.digest(t, fmt.Sprint("account:", n)), Lease: s.lease(t, fmt.Sprint("account:", n)), Name: "account", Since: time.Now().Add(-time.Duration(20-n) * time.Minute), Caller: "github.com/example/bank/transfer.go:42 (main.transfer)"})
		}
	}
	hold := must(s.holder.Lock(ctx, hot))(t)
	s.lost, s.lock = hold.Context().Done(), s.digest(t, hot)
	holder.Holds[0].Digest, holder.Holds[0].Lease = s.lock, s.lease(t, hot)
	holder.Held = rows + 1
	s.next = s.wait(t)
	t.Cleanup(func() {
		for _, lease := range append(leases, hold) {
			_ = lease.Release(context.Background())
		}
	})
	for n := range outcomes {
		key := fmt.Sprint("payment:", n)
		attempt := must(s.holder.Begin(ctx, key, nil))(t)
		if err := attempt.Unknown(ctx, nil); err != nil {
			t.Fatal(err)
		}
		s.last = must(s.inspector.Record(ctx, key))(t).Key.String()
		if n == 0 {
			s.first = s.last
		}
	}
	lock := must(s.inspector.Lock(ctx, hot))(t)
	s.register(t, lock.Holders[0].Process, holder)
	s.register(t, lock.Waiters[0].Process, registry.Process{
		Service: "bank", Host: "pod-2", Version: "v1.4.0", PID: 7, Waiting: 12,
		Waits: []registry.Wait{{Digest: s.lock, Name: "account", Since: time.Now().Add(-95 * time.Second), Caller: "github.com/example/bank/withdraw.go:7 (main.withdraw)", Requests: 12}},
	})
	return s
}

// digest returns the digest of a key that is locked.
func (s *site) digest(t *testing.T, key string) string {
	t.Helper()
	return must(s.inspector.Lock(t.Context(), key))(t).Key.String()
}

// lease returns the name of the lease of a key that is locked.
func (s *site) lease(t *testing.T, key string) string {
	t.Helper()
	return string(must(s.inspector.Lock(t.Context(), key))(t).Holders[0].Lease)
}

// wait makes a request of the second process wait for the hot lock until the test ends.
func (s *site) wait(t *testing.T) <-chan *core.Lease {
	t.Helper()
	leases, ended := make(chan *core.Lease, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		if lease, err := s.waiter.Lock(ctx, hot); err == nil {
			leases <- lease
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		select {
		case lease := <-leases:
			_ = lease.Release(context.Background())
		default:
		}
	})
	suite.Eventually(t, "a process waits", func() bool { return must(s.inspector.Lock(t.Context(), hot))(t).Waiting > 0 })
	return leases
}

// register writes the record of a process, as core.WithInstance does each 10 s.
func (s *site) register(t *testing.T, id string, p registry.Process) {
	t.Helper()
	p.Started, p.Beat = time.Now().Add(-3*time.Hour), time.Now()
	name := keyspace.New("reqlock:").Process(id)
	if err := s.rdb.HSet(t.Context(), name, registry.Encode(&p, patience)...).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.rdb.PExpire(t.Context(), name, patience).Err(); err != nil {
		t.Fatal(err)
	}
}

// pages returns the addresses of a page of each kind.
func (s *site) pages(t *testing.T) map[string]string {
	t.Helper()
	lock := must(s.inspector.Lock(t.Context(), hot))(t)
	return map[string]string{
		"overview": s.url, "outcomes": s.url + "?outcomes", "processes": s.url + "?processes",
		"lock": s.url + "?lock=" + s.lock, "attempt": s.url + "?attempt=" + s.first,
		"process": s.url + "?process=" + lock.Holders[0].Process, "silent": s.url + "?process=0123456789abcdef0123456789abcdef",
		"no lock": s.url + "?lock=0123456789ab",
	}
}

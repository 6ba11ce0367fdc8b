package engine

import (
	"context"
	"flag"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The command line may set these flags, too: -rapid.checks=1000, or the -rapid.seed of a failure.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"checks": strconv.Itoa(suite.Size(4, 30)), "shrinktime": "10s", "nofailfile": "true"} {
		if err := flag.Set("rapid."+name, value); err != nil {
			panic(err)
		}
	}
	suite.Main(m)
}

// recorder keeps the engine's events.
type recorder struct {
	mu     sync.Mutex
	events []Event
}

func (r *recorder) observe(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// all returns the events in their order.
func (r *recorder) all() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// of returns the events of one kind.
func (r *recorder) of(kind Kind) []Event {
	return slices.DeleteFunc(r.all(), func(e Event) bool { return e.Kind != kind })
}

// lossError is the cause of a loss in the tests.
type lossError struct{ loss Loss }

func (lossError) Error() string { return "lost" }

// bound is the command bound of the tests' engines.
const bound = 250 * time.Millisecond

// failFast is after which time without a reply the tests' engines refuse new callers.
const failFast = 3 * time.Second

// newEngine returns an engine on a fake store, with a recorder.
func newEngine() (*Engine, *fakeStore, *recorder) { return newEngineOn(newFakeServer(), "me") }

// newEngineOn returns the engine of another process on the server.
func newEngineOn(server *fakeServer, process string) (*Engine, *fakeStore, *recorder) {
	s, r := newFakeStore(server, process), &recorder{}
	e := New(s, Config{
		Process: process, Bound: bound, MaxTotalWaiters: 2000, FailFast: failFast,
		MaxOpenCommits: 10, MaxOpenBytes: 1000,
		Hooks: Hooks{Observe: r.observe, Cause: func(l Loss) error { return lossError{l} }},
	})
	return e, s, r
}

// queueCount returns how many queues the engine keeps.
func (e *Engine) queueCount() (n int) {
	e.eachShard(func(s *shard) { n += len(s.queues) })
	return n
}

// request returns the request that most tests use.
func request(wait time.Duration) Request {
	return Request{Key: "k", TTL: 10 * time.Second, MaxWaiters: 1000, Wait: wait, Renew: true}
}

// hold acquires or fails the test.
func hold(t *testing.T, e *Engine, r Request) *Hold {
	t.Helper()
	h, err := e.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return h
}

// release releases the hold, and fails the test if the lease was lost before.
func release(t *testing.T, h *Hold) {
	t.Helper()
	if loss, err := h.Release(context.Background()); loss != NotLost || err != nil {
		t.Errorf("release: loss %v, error %v", loss, err)
	}
}

// reasonOf returns the reason of a refusal.
func reasonOf(t *testing.T, err error) Reason {
	t.Helper()
	refusal, ok := err.(*Refusal) //nolint:errorlint // Acquire promises the type itself
	if !ok {
		t.Fatalf("got error %v, want a refusal", err)
	}
	return refusal.Reason
}

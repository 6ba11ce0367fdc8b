package engine

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reqlock/reqlock/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore is a store in memory, whose faults a test switches on. In a
// synctest bubble it runs on the bubble's clock.
type fakeStore struct {
	// before is called ahead of each transition; an error is its answer. It may
	// block, as a slow server does. after is called once it was applied; an
	// error is a lost reply.
	before, after switchable
	// closed is called once, when the store is closed.
	closed func()

	mu    sync.Mutex
	tries map[string]int // transitions begun, also those that failed
	keys  map[string]entry
	calls []call
	hint  func(key, token string)
}

// switchable is a function that a test changes while the store is in use.
type switchable struct {
	mu sync.Mutex
	f  func(transition string, r store.Request) error
}

func (s *switchable) set(f func(transition string, r store.Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f = f
}

func (s *switchable) call(transition string, r store.Request) error {
	s.mu.Lock()
	f := s.f
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(transition, r)
}

type entry struct {
	value string
	until time.Time
}

type call struct {
	transition, token string
	at                time.Time
}

func newFakeStore() *fakeStore {
	return &fakeStore{keys: make(map[string]entry), tries: make(map[string]int)}
}

// transition runs f on the live value of the key.
func (s *fakeStore) transition(name string, r store.Request, f func(value string)) error {
	s.mu.Lock()
	s.tries[name]++
	s.mu.Unlock()
	if err := s.before.call(name, r); err != nil {
		return err
	}
	s.mu.Lock()
	s.calls = append(s.calls, call{name, r.Token, time.Now()})
	if e, ok := s.keys[r.Key]; ok && !time.Now().Before(e.until) {
		delete(s.keys, r.Key)
	}
	f(s.keys[r.Key].value)
	s.mu.Unlock()
	return s.after.call(name, r)
}

func (s *fakeStore) Take(_ context.Context, r store.Request) (store.Answer, error) {
	return s.acquire("take", r)
}

func (s *fakeStore) Ask(_ context.Context, r store.Request) (store.Answer, error) {
	return s.acquire("ask", r)
}

func (s *fakeStore) acquire(name string, r store.Request) (answer store.Answer, err error) {
	sent := time.Now()
	err = s.transition(name, r, func(value string) {
		if value != "" && value != r.Token {
			answer = store.Answer{Holder: value, Remaining: time.Until(s.keys[r.Key].until)}
			return
		}
		s.keys[r.Key] = entry{r.Token, time.Now().Add(r.TTL)}
		answer = store.Answer{Granted: true, Since: sent}
	})
	return answer, err
}

func (s *fakeStore) Renew(_ context.Context, r store.Request) (sent time.Time, held bool, err error) {
	sent = time.Now()
	err = s.transition("renew", r, func(value string) {
		if held = value == r.Token; held {
			until := time.Now().Add(r.TTL)
			if until.After(s.keys[r.Key].until) {
				s.keys[r.Key] = entry{r.Token, until}
			}
		}
	})
	return sent, held, err
}

func (s *fakeStore) Release(_ context.Context, r store.Request) (held bool, err error) {
	err = s.transition("release", r, func(value string) {
		if held = value == r.Token; held {
			delete(s.keys, r.Key)
		}
	})
	return held, err
}

func (s *fakeStore) OnHint(hint func(key, token string)) { s.hint = hint }

func (s *fakeStore) Close(context.Context) error {
	if f := s.closed; f != nil {
		s.closed = nil
		f()
	}
	return nil
}

// set puts a value into a key, as another process does.
func (s *fakeStore) set(key, value string, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[key] = entry{value, time.Now().Add(ttl)}
}

// value returns what is in a key.
func (s *fakeStore) value(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.keys[key]; time.Now().Before(e.until) {
		return e.value
	}
	return ""
}

// count returns how often a transition was run.
func (s *fakeStore) count(transition string) int { return len(s.times(transition)) }

// tried returns how often a transition was begun.
func (s *fakeStore) tried(transition string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries[transition]
}

// times returns when a transition was run.
func (s *fakeStore) times(transition string) (at []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.transition == transition {
			at = append(at, c.at)
		}
	}
	return at
}

// transitions returns the names of all transitions in their order.
func (s *fakeStore) transitions() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		names = append(names, c.transition)
	}
	return names
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

// lossError is the cause that the tests' hook makes of a loss.
type lossError struct{ loss Loss }

func (lossError) Error() string { return "lost" }

// bound is the command bound of the tests' engines.
const bound = 250 * time.Millisecond

// newEngine returns an engine on a fake store, with a recorder.
func newEngine() (*Engine, *fakeStore, *recorder) {
	s, r := newFakeStore(), &recorder{}
	e := New(s, "me", bound, Hooks{
		Observe: r.observe,
		Cause:   func(l Loss) error { return lossError{l} },
	})
	return e, s, r
}

// lineCount returns how many lines the engine keeps.
func (e *Engine) lineCount() (n int) {
	e.eachShard(func(s *shard) { n += len(s.lines) })
	return n
}

// request is what most tests ask for.
func request(wait time.Duration) Request {
	return Request{Key: "k", TTL: 10 * time.Second, Wait: wait, Renew: true}
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

// release releases and fails the test unless the lease was whole to its end.
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

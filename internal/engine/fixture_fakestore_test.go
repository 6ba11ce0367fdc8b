package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// fakeStore is the store of one process on a fake server. A test can make it fail.
type fakeStore struct {
	*fakeServer
	// before is called before each transition is applied; its error is the reply. It
	// may block, as a slow server does. after is called after the transition was
	// applied; its error is a lost reply.
	before, after switchable
	// closed is called once, when the store is closed.
	closed func()

	begun            map[string]int // transitions that began, also those that failed
	calls            []call
	listening        int
	subscriptionLost bool          // the subscription is lost
	connecting       time.Duration // how long a subscription takes
	nextUnsure       bool          // the next release is answered only when it is sent twice
	inline           bool          // answer inline also when that takes long
	unserved         time.Time     // the result of Unserved, with errDown
	refused          int           // calls of CountRefused
	compared         []int         // how many keys each Compare had
	hint             func(key, token string)
	lateGrant        func(key, token string)
}

// switchable is a function that a test changes while the store is used.
type switchable struct {
	mu sync.Mutex
	f  func(transition string, r storetest.AnyRequest) error
}

func (s *switchable) set(f func(transition string, r storetest.AnyRequest) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f = f
}

func (s *switchable) call(transition string, r storetest.AnyRequest) error {
	s.mu.Lock()
	f := s.f
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(transition, r)
}

func (s *switchable) isSet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.f != nil
}

type call struct {
	transition, token string
	at                time.Time
}

// newFakeStore returns the store of a process.
func newFakeStore(server *fakeServer, process string) *fakeStore {
	s := &fakeStore{fakeServer: server, begun: make(map[string]int)}
	server.mu.Lock()
	defer server.mu.Unlock()
	server.stores[process] = s
	return s
}

// listens reports whether the process listens.
func (s *fakeStore) listens() bool { return s.listening > 0 && !s.subscriptionLost }

// loseSubscription loses the subscription, or restores it.
func (s *fakeStore) loseSubscription(dropped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscriptionLost = dropped
}

// transition runs f on the present value of the key.
func (s *fakeStore) transition(name string, r storetest.AnyRequest, f func(value string)) error {
	if r.Token != "" && limitOf(r.Token) != r.Limit {
		panic(fmt.Sprintf("a %s of %q with limit %d", name, r.Token, r.Limit))
	}
	s.mu.Lock()
	s.begun[name]++
	s.mu.Unlock()
	if err := s.before.call(name, r); err != nil {
		return err
	}
	s.mu.Lock()
	s.calls = append(s.calls, call{name, r.Token, time.Now()})
	f(s.live(r.Key).value)
	s.mu.Unlock()
	return s.after.call(name, r)
}

func (s *fakeStore) Take(r store.TakeRequest, done func(store.Answer, error)) {
	got := storetest.OfTake(r)
	s.answer(got, func() { done(s.take(got)) })
}

func (s *fakeStore) Enqueue(r store.EnqueueRequest, done func(store.Answer, error)) {
	got := storetest.OfEnqueue(r)
	s.answer(got, func() { done(s.enqueue(got)) })
}

func (s *fakeStore) Renew(r store.RenewRequest, done func(store.Renewal, error)) {
	got := storetest.OfRenew(r)
	s.answer(got, func() { done(s.renew(got)) })
}

func (s *fakeStore) Release(r store.ReleaseRequest, done func(store.ReleaseResult, error)) {
	got := storetest.OfRelease(r)
	s.answer(got, func() { done(s.release(got)) })
}

func (s *fakeStore) CanCompare() bool { return true }

func (s *fakeStore) Compare(seen []store.Seen, _ time.Duration, done func([]int, error)) {
	go func() {
		s.mu.Lock()
		s.compared = append(s.compared, len(seen))
		s.mu.Unlock()
		if err := s.before.call("compare", storetest.AnyRequest{}); err != nil {
			done(nil, err)
			return
		}
		s.mu.Lock()
		var changed []int
		for i, each := range seen {
			if s.live(each.Key).value != each.Holder {
				changed = append(changed, i)
			}
		}
		s.mu.Unlock()
		done(changed, nil)
	}()
}

// comparisons returns how many keys each Compare had.
func (s *fakeStore) comparisons() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.compared)
}

// answer runs f on the goroutine of a caller that allows it, if f is fast.
func (s *fakeStore) answer(r storetest.AnyRequest, f func()) {
	if r.Inline && (s.inline || !s.before.isSet() && !s.after.isSet()) {
		f()
		return
	}
	go f()
}

func (s *fakeStore) Listen(string) (<-chan struct{}, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listening++
	ready := make(chan struct{})
	if s.connecting == 0 {
		close(ready)
	} else {
		time.AfterFunc(s.connecting, func() { close(ready) })
	}
	return ready, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.listening--
	}
}

func (s *fakeStore) OnHint(hint func(key, token string)) { s.hint = hint }

func (s *fakeStore) OnLateGrant(late func(key, token string)) { s.lateGrant = late }

func (s *fakeStore) OnWarning(func(error)) {}

func (s *fakeStore) OnOutage(func(store.Outage)) {}

func (s *fakeStore) CountRefused(string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
	return true
}

func (s *fakeStore) CountUnlocked(string) {}

func (s *fakeStore) Watch() {}

func (s *fakeStore) Unserved(string) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unserved, errDown
}

// setDown makes each transition fail from now on, or ends that.
func (s *fakeStore) setDown(down bool) {
	s.mu.Lock()
	s.unserved = time.Time{}
	if down {
		s.unserved = time.Now()
	}
	s.mu.Unlock()
	s.before.set(func(string, storetest.AnyRequest) error {
		if down {
			return errDown
		}
		return nil
	})
}

func (s *fakeStore) Close(context.Context) error {
	if f := s.closed; f != nil {
		s.closed = nil
		f()
	}
	return nil
}

// count returns how many times a transition was applied.
func (s *fakeStore) count(transition string) int { return len(s.times(transition)) }

// begunCount returns how many times a transition began.
func (s *fakeStore) begunCount(transition string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun[transition]
}

// times returns when a transition was applied.
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

// transitions returns the names of all transitions, in order.
func (s *fakeStore) transitions() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		names = append(names, c.transition)
	}
	return names
}

// checkTransitions fails the test unless these were the transitions.
func (s *fakeStore) checkTransitions(t *testing.T, want ...string) {
	t.Helper()
	if got := s.transitions(); !slices.Equal(got, want) {
		t.Errorf("transitions %v, want %v", got, want)
	}
}

// renewalsOf returns when renewals of a token were applied.
func renewalsOf(s *fakeStore, token string) (at []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.transition == "renew" && c.token == token {
			at = append(at, c.at)
		}
	}
	return at
}

// keyExpiry returns when the key k of the store expires.
func keyExpiry(s *fakeStore) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys["k"].until
}

// validity is the validity of a lease of 10 s, by the package comment.
const validity = 10*time.Second - 100*time.Millisecond - 2*time.Millisecond

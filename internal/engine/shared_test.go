package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// sharing returns a request for a shared lease.
func sharing(limit store.Limit, wait time.Duration) Request {
	r := request(wait)
	r.Limit = limit
	return r
}

// holdAll acquires n leases.
func holdAll(t *testing.T, e *Engine, r Request, n int) (holds []*Hold) {
	t.Helper()
	for range n {
		holds = append(holds, hold(t, e, r))
	}
	return holds
}

// counts returns how many times each of the transitions was applied.
func counts(s *fakeStore) map[string]int {
	n := make(map[string]int)
	for _, transition := range s.transitions() {
		n[transition]++
	}
	return n
}

// Each reader has a token, a lease and a release of its own, and gets in with one command.
func TestReadersHoldBesideEachOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		tokens := make(map[string]bool)
		var holds []*Hold
		for i := range 100 {
			h := hold(t, p.engines[i%2], sharing(store.Unlimited, 0))
			holds, tokens[h.Token()] = append(holds, h), true
		}
		if out := p.server.sharedTokens("k"); len(out) != 100 || len(tokens) != 100 {
			t.Errorf("%d leases with %d tokens", len(out), len(tokens))
		}
		for _, h := range holds {
			release(t, h)
		}
		for _, s := range p.stores {
			if got := counts(s); got["enqueue"] != 50 || got["release"] != 50 || len(got) != 2 || s.listens() {
				t.Errorf("transitions %v, listens %v", got, s.listens())
			}
		}
		for _, event := range append(p.events[0].all(), p.events[1].all()...) {
			if !event.Shared || event.Queued || event.Kind == Acquired && event.Grant != Free {
				t.Errorf("event %+v", event)
			}
		}
		p.checkIdle(t)
	})
}

// A request for an exclusive lease is not reported as shared, and is refused beside readers.
func TestExclusiveCallerIsRefusedBesideReaders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		reader := hold(t, p.engines[0], sharing(store.Unlimited, 0))
		for i, e := range p.engines {
			refuses(t, e, request(0), Busy)
			if refused := p.events[i].of(Refused); len(refused) != 1 || refused[0].Shared {
				t.Errorf("process %d: events %+v", i, refused)
			}
		}
		release(t, reader)
		writer := hold(t, p.engines[0], request(0))
		for _, e := range p.engines {
			refuses(t, e, sharing(store.Unlimited, 0), Busy)
		}
		release(t, writer)
		p.checkIdle(t)
	})
}

// A process that holds all permits refuses a caller that may not wait without a command.
func TestPermitsAreLimited(t *testing.T) {
	t.Parallel()
	for name, holders := range map[string]int{"in one process": 0, "in two processes": 1} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			holds := append(holdAll(t, p.engines[0], sharing(5, 0), 3), holdAll(t, p.engines[holders], sharing(5, 0), 2)...)
			before := len(p.stores[0].transitions())
			_, err := p.engines[0].Acquire(t.Context(), sharing(5, 0))
			if commands := len(p.stores[0].transitions()) - before; reasonOf(t, err) != Busy || commands != holders {
				t.Errorf("the sixth: %v, after %d commands", err, commands)
			}
			release(t, holds[0])
			holds[0] = hold(t, p.engines[1], sharing(5, 0))
			for _, h := range holds {
				release(t, h)
			}
			p.checkIdle(t)
		})
	}
}

// A try is refused only if there is no permit for it, even if others are refused at the same
// moment, and whichever reply comes first.
func TestTriesAtOnceGetAllPermits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		holder int // the process that holds the other permits
		delay  func(n int) time.Duration
	}{
		"beside leases of the process":                       {0, func(int) time.Duration { return time.Millisecond }},
		"beside leases of another process":                   {1, func(n int) time.Duration { return time.Duration(n) * time.Millisecond }},
		"beside leases of another process, in reverse order": {1, func(n int) time.Duration { return time.Duration(10-n) * time.Millisecond }},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			e, s := p.engines[0], p.stores[0]
			others := holdAll(t, p.engines[test.holder], sharing(5, 0), 2)
			var mu sync.Mutex
			replies := 0
			s.after.set(func(string, storetest.AnyRequest) error {
				mu.Lock()
				replies++
				wait := test.delay(replies)
				mu.Unlock()
				time.Sleep(wait)
				return nil
			})
			won := 0
			var group sync.WaitGroup
			for range 9 {
				group.Go(func() {
					h, err := e.Acquire(t.Context(), sharing(5, 0))
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						won++
						others = append(others, h)
					} else if reasonOf(t, err) != Busy {
						t.Error(err)
					}
				})
			}
			group.Wait()
			if won != 3 {
				t.Errorf("%d tries won, want 3", won)
			}
			s.after.set(nil)
			for _, h := range others {
				release(t, h)
			}
			p.checkIdle(t)
		})
	}
}

// A try does not pass a writer that waits, and is refused at once behind waiting readers of
// its process.
func TestTryDoesNotPassWaitingHead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(3)
		reader := hold(t, p.engines[0], sharing(store.Unlimited, 0))
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) { time.Sleep(time.Second) })
		for _, e := range p.engines {
			refuses(t, e, sharing(store.Unlimited, 0), Busy)
		}
		waiting(t, p.engines[2], sharing(store.Unlimited, WaitForever), func(*Hold) {})
		before := len(p.stores[2].transitions())
		_, err := p.engines[2].Acquire(t.Context(), sharing(store.Unlimited, 0))
		if commands := len(p.stores[2].transitions()) - before; reasonOf(t, err) != Busy || commands != 0 {
			t.Errorf("behind a waiting reader: %v after %d commands", err, commands)
		}
		release(t, reader)
		time.Sleep(5 * time.Second)
		p.checkIdle(t)
	})
}

// The end of one shared lease costs its own holder only.
func TestLossOfSharedLeaseCostsOneHolder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		holds := holdAll(t, p.engines[0], sharing(3, 0), 3)
		lost := holds[1]
		p.server.locked(func() { delete(p.server.phases["k"].leases, lost.Token()) })
		served := false
		waiting(t, p.engines[0], sharing(3, WaitForever), func(*Hold) { served = true })
		sleep(lost.request.TTL / 2)
		if !served || lost.Alive() || !holds[0].Alive() || !holds[2].Alive() {
			t.Errorf("the waiter is served: %v; alive: %v, %v, %v", served, holds[0].Alive(), lost.Alive(), holds[2].Alive())
		}
		if events := p.events[0].of(Lost); len(events) != 1 || !events[0].Shared || events[0].Loss != Taken {
			t.Errorf("losses %+v", events)
		}
		releaseLost(t, lost, Taken)
		release(t, holds[0])
		release(t, holds[2])
		p.checkIdle(t)
	})
}

// Each shared lease is renewed, and expires by itself.
func TestSharedLeasesExpireByThemselves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		short := sharing(store.Unlimited, 0)
		short.TTL, short.Renew = time.Second, false
		expires, renewed := hold(t, p.engines[0], short), hold(t, p.engines[0], sharing(store.Unlimited, 0))
		<-expires.Context().Done()
		if cause := context.Cause(expires.Context()); !errors.Is(cause, lossError{Expired}) {
			t.Errorf("the cause is %v", cause)
		}
		time.Sleep(time.Minute)
		if !renewed.Alive() || !slices.Equal(p.server.sharedTokens("k"), []string{renewed.Token()}) {
			t.Errorf("alive: %v, leases %v", renewed.Alive(), p.server.sharedTokens("k"))
		}
		_, _ = expires.Release(t.Context())
		release(t, renewed)
		p.checkIdle(t)
	})
}

// The limit of an attempt is exclusive, whatever the request says.
func TestAttemptIsNeverShared(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, events := newEngine()
		r := attempt("f", 0)
		r.Limit = store.Unlimited
		h := hold(t, e, r)
		if s.value("k") != h.Token() || limitOf(h.Token()) != store.Exclusive {
			t.Errorf("the key holds %q", s.value("k"))
		}
		release(t, h)
		for _, event := range events.all() {
			if event.Shared {
				t.Errorf("event %+v", event)
			}
		}
	})
}

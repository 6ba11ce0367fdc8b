package engine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Each case loses the message that would have woken the waiter. A waiter checks the key
// after recheckInterval and a quarter for jitter, also if its shard compares the key meanwhile.
func TestWaiterSurvivesLostMessage(t *testing.T) {
	t.Parallel()
	const most = recheckInterval + recheckInterval/4
	for _, test := range []struct {
		name  string
		lose  func(p *processes)
		frees bool // lose frees the key
		most  time.Duration
	}{
		{"the hint", func(p *processes) { p.server.hintsLost = true }, false, most},
		{"the subscription", func(p *processes) { p.stores[1].loseSubscription(true) }, false, most},
		{"the store's queue", func(p *processes) { delete(p.server.queues, "k") }, false, most},
		{"the holder", func(p *processes) { p.server.set("k", "", 0) }, true, most},
		{
			"a successor that is dead", func(p *processes) {
				dead := newFakeStore(p.server, "dead")
				dead.listening, dead.hint = 1, func(string, string) {}
				p.server.queues["k"] = slices.Insert(p.server.queues["k"], 0, "dead:1")
			}, false, most,
		},
		{
			"the end of a foreign holder", func(p *processes) {
				p.server.set("k", "foreign", time.Hour)
				time.Sleep(5 * time.Second)
				p.server.set("k", "", 0)
			}, true, maxPause,
		},
	} {
		lost := func(t *testing.T, waited time.Duration) {
			t.Helper()
			p := newProcesses(2)
			h := hold(t, p.engines[0], request(0))
			served := make(chan time.Time, 1)
			waiting(t, p.engines[1], request(WaitForever), func(*Hold) { served <- time.Now() })
			sleep(waited)
			if test.lose(p); !test.frees {
				release(t, h)
			}
			freed := time.Now()
			if late := (<-served).Sub(freed); late > test.most {
				t.Errorf("served %v late, want at most %v", late, test.most)
			}
			p.stores[1].loseSubscription(false)
			_, _ = h.Release(t.Context())
			time.Sleep(time.Minute)
			p.checkIdle(t)
		}
		row(t, test.name, func(t *testing.T) { lost(t, 0) })
		row(t, test.name+", after a while", func(t *testing.T) { lost(t, 4*recheckInterval) })
	}
}

// The hint of a grant may arrive before the reply that adds the waiter to the store's
// queue.
func TestHintBeforeReplyIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		begun := time.Now()
		p.stores[1].after.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "enqueue" && p.stores[1].count("enqueue") == 1 {
				release(t, h)
				time.Sleep(10 * time.Millisecond) // the hint arrives before the reply
			}
			return nil
		})
		h2 := hold(t, p.engines[1], request(WaitForever))
		if late := time.Since(begun); late > 10*time.Millisecond {
			t.Errorf("served %v late", late)
		}
		release(t, h2)
		p.checkIdle(t)
	})
}

func TestWaitersAreServedAfterUnknownRelease(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(s *fakeStore) *switchable{
		"applied, reply lost": func(s *fakeStore) *switchable { return &s.after },
		"never applied":       func(s *fakeStore) *switchable { return &s.before },
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			h := hold(t, p.engines[0], Request{Key: "k", TTL: 10 * time.Second, Renew: true})
			_, _ = h.Extend(t.Context(), time.Minute) // so that it is not passed on
			served := 0
			for range 3 {
				waiting(t, p.engines[0], request(WaitForever), func(*Hold) { served++ })
			}
			waiting(t, p.engines[1], request(WaitForever), func(*Hold) { served++ })
			fail(p.stores[0]).set(func(transition string, _ storetest.AnyRequest) error {
				if transition == "release" && p.stores[0].begunCount("release") == 1 {
					return errNoCommitReply
				}
				return nil
			})
			if _, err := h.Release(t.Context()); !errors.Is(err, errNoCommitReply) {
				t.Errorf("release: %v", err)
			}
			sleep(3 * time.Second)
			if served != 4 {
				t.Errorf("%d of 4 served", served)
			}
			p.checkIdle(t)
		})
	}
}

// A waiter that arrives while a release waits for a renewal gets its place in the
// store's queue by that release, and listens.
func TestWaiterDuringReleaseListens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		a, b := p.engines[0], p.engines[1]
		h := hold(t, a, request(0))
		turn := make(chan struct{})
		waiting(t, b, request(WaitForever), func(*Hold) { <-turn })
		p.stores[0].before.set(delays(20*time.Millisecond, "renew"))
		time.Sleep(request(0).TTL/3 + time.Millisecond) // a renewal is in flight
		h.BeginRelease()
		served := make(chan time.Time, 1)
		waiting(t, a, request(WaitForever), func(*Hold) { served <- time.Now() })
		time.Sleep(50 * time.Millisecond) // the other process gets its turn
		close(turn)
		freed := time.Now()
		if late := (<-served).Sub(freed); late != 0 {
			t.Errorf("served %v late", late)
		}
		p.checkIdle(t)
	})
}

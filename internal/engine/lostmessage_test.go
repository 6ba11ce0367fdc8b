package engine

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Each case loses the message that would have woken the waiter. A waiter checks the key
// after recheckInterval and a quarter for jitter.
func TestWaiterSurvivesLostMessage(t *testing.T) {
	t.Parallel()
	const most = recheckInterval + recheckInterval/4
	tests := []struct {
		name string
		lose func(p *processes, h *Hold)
		free func(p *processes, h *Hold)
		most time.Duration
	}{
		{"the hint", func(p *processes, _ *Hold) { p.server.hintsLost = true }, nil, most},
		{"the subscription", func(p *processes, _ *Hold) { p.stores[1].loseSubscription(true) }, nil, most},
		{"the store's queue", func(p *processes, _ *Hold) { delete(p.server.queues, "k") }, nil, most},
		{"the holder", nil, func(p *processes, _ *Hold) { p.server.set("k", "", 0) }, most},
		{
			"a successor that is dead", func(p *processes, _ *Hold) {
				dead := newFakeStore(p.server, "dead")
				dead.listening, dead.hint = 1, func(string, string) {}
				p.server.queues["k"] = slices.Insert(p.server.queues["k"], 0, "dead:1")
			}, nil, most,
		},
		{
			"the end of a foreign holder", nil, func(p *processes, _ *Hold) {
				p.server.set("k", "foreign", time.Hour)
				time.Sleep(5 * time.Second)
				p.server.set("k", "", 0)
			}, maxPause,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(2)
				h := hold(t, p.engines[0], request(0))
				served := make(chan time.Time, 1)
				waiting(t, p.engines[1], request(WaitForever), func(*Hold) { served <- time.Now() })
				if test.lose != nil {
					test.lose(p, h)
				}
				if test.free != nil {
					test.free(p, h)
				} else {
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
			})
		})
	}
}

func TestHintWithoutTokenMakesWaiterAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		served := make(chan time.Duration, 1)
		begun := time.Now()
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) { served <- time.Since(begun) })
		p.server.hintsLost = true
		release(t, h)
		p.stores[1].hint("k", "")
		if late := <-served; late != 0 {
			t.Errorf("served %v late", late)
		}
		p.stores[1].hint("k", "") // without waiters
		p.checkIdle(t)
	})
}

// The hint of a grant may arrive before the reply that adds the waiter to the store's
// queue.
func TestHintBeforeReplyIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
	noReply := &store.Fault{Unknown: true, Temporary: true, Err: errors.New("no reply")}
	for name, fail := range map[string]func(s *fakeStore) (before, after error){
		"applied, reply lost": func(*fakeStore) (error, error) { return nil, noReply },
		"never applied":       func(*fakeStore) (error, error) { return noReply, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(2)
				h := hold(t, p.engines[0], Request{Key: "k", TTL: 10 * time.Second, Renew: true})
				_, _ = h.Extend(t.Context(), time.Minute) // so that it is not passed on
				served := 0
				for range 3 {
					waiting(t, p.engines[0], request(WaitForever), func(*Hold) { served++ })
				}
				waiting(t, p.engines[1], request(WaitForever), func(*Hold) { served++ })
				before, after := fail(p.stores[0])
				once := func(err error) func(string, storetest.AnyRequest) error {
					return func(transition string, _ storetest.AnyRequest) error {
						if transition == "release" && p.stores[0].begunCount("release") == 1 {
							return err
						}
						return nil
					}
				}
				p.stores[0].before.set(once(before))
				p.stores[0].after.set(once(after))
				if _, err := h.Release(t.Context()); !errors.Is(err, noReply) {
					t.Errorf("release: %v", err)
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if served != 4 {
					t.Errorf("%d of 4 served", served)
				}
				p.checkIdle(t)
			})
		})
	}
}

func TestWaiterIsServedAfterKeyWasTakenDuringRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], request(0))
		served := false
		waiting(t, p.engines[0], request(WaitForever), func(*Hold) { served = true })
		time.Sleep(time.Second) // the budget is spent
		p.server.set("k", "another", time.Second)
		if loss, err := h.Release(t.Context()); loss != Taken || err != nil {
			t.Errorf("release: %v, %v", loss, err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !served {
			t.Error("the waiter was not served")
		}
		p.checkIdle(t)
	})
}

// A waiter that arrives while a release waits for a renewal gets its place in the
// store's queue by that release, and listens.
func TestWaiterDuringReleaseListens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		a, b := p.engines[0], p.engines[1]
		h := hold(t, a, request(0))
		turn := make(chan struct{})
		waiting(t, b, request(WaitForever), func(*Hold) { <-turn })
		p.stores[0].before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "renew" {
				time.Sleep(20 * time.Millisecond)
			}
			return nil
		})
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

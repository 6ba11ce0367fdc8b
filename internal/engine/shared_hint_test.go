package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Another client publishes tokens with limits: of leases, of the next episodes, and with
// numbers that were issued with another limit. Nothing of that ends a lease.
func TestForgedHintReleasesNoSharedLease(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]func(h *Hold, next uint64) string{
		"of the lease":               func(h *Hold, _ uint64) string { return h.Token() },
		"of the next episode":        func(_ *Hold, next uint64) string { return store.NewToken("me", 3, next) },
		"of another limit":           func(_ *Hold, next uint64) string { return store.NewToken("me", 5, next-1) },
		"of an exclusive lease":      func(_ *Hold, next uint64) string { return store.NewToken("me", store.Exclusive, next-1) },
		"of another process":         func(*Hold, uint64) string { return "you:0131" },
		"without a number":           func(*Hold, uint64) string { return "me:013" },
		"with a limit that is short": func(*Hold, uint64) string { return "me:09" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, s, events := newEngine()
				s.before.set(func(transition string, _ storetest.AnyRequest) error {
					if transition == "release" {
						time.Sleep(100 * time.Millisecond)
					}
					return nil
				})
				for range 3 {
					h := hold(t, e, sharing(3, 0))
					forged := token(h, e.tokens.Load()+1)
					s.hint("k", forged)
					s.hint("k", forged)
					synctest.Wait()
					later := hold(t, e, sharing(3, 0))
					for range 10 {
						s.hint("k", forged)
						time.Sleep(30 * time.Millisecond)
					}
					if out := s.sharedTokens("k"); len(out) != 2 {
						t.Errorf("the leases are %v", out)
					}
					release(t, h)
					release(t, later)
				}
				if lost := events.of(Lost); len(lost) != 0 || s.value("k") != "" {
					t.Errorf("losses %+v, the key holds %q", lost, s.value("k"))
				}
			})
		})
	}
}

// A dead token with a limit, in the key or in the queue, is released with that limit.
func TestHintOfDeadSharedTokenReleasesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], sharing(3, 0))
		release(t, h)
		other := hold(t, p.engines[0], sharing(3, 0))
		p.server.mu.Lock()
		p.server.phases["k"].leases[h.Token()] = time.Now().Add(time.Hour) // a late command
		p.server.mu.Unlock()
		var limit store.Limit
		p.stores[0].before.set(func(transition string, r storetest.AnyRequest) error {
			if transition == "release" {
				limit = r.Limit
			}
			return nil
		})
		p.stores[0].hint("k", h.Token())
		synctest.Wait()
		if out := p.server.sharedTokens("k"); len(out) != 1 || out[0] != other.Token() || limit != 3 {
			t.Errorf("the leases are %v; released with limit %d", out, limit)
		}
		release(t, other)
		p.checkIdle(t)
	})
}

// A hint of a shared lease that was lost releases nothing while its holder has not returned.
func TestHintOfLostSharedLeaseReleasesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		lost, other := hold(t, p.engines[0], sharing(3, 0)), hold(t, p.engines[0], sharing(3, 0))
		p.server.mu.Lock()
		delete(p.server.phases["k"].leases, lost.Token())
		p.server.mu.Unlock()
		<-lost.Context().Done()
		p.stores[0].hint("k", lost.Token())
		synctest.Wait()
		if n := p.stores[0].count("release"); n != 0 {
			t.Errorf("%d releases", n)
		}
		_, _ = lost.Release(t.Context())
		synctest.Wait()
		if n := p.stores[0].count("release"); n != 1 {
			t.Errorf("%d releases after the holder has returned", n)
		}
		release(t, other)
		p.checkIdle(t)
	})
}

// The release of a shared lease gets no reply. It is sent again, and meanwhile the queue
// goes on.
func TestLostReleaseOfSharedLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], sharing(1, 0))
		served := false
		waiting(t, p.engines[0], sharing(1, WaitForever), func(*Hold) { served = true })
		time.Sleep(time.Second) // the budget is spent
		failed := false
		p.stores[0].before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "release" && !failed {
				failed = true
				return errNoCommitReply
			}
			return nil
		})
		if _, err := h.Release(t.Context()); err == nil {
			t.Error("no fault")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !served {
			t.Error("the waiter is not served")
		}
		p.checkIdle(t)
	})
}

// A grant that arrives after its validity is given back, and the waiter gets another one.
func TestLateGrantOfSharedLeaseIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		delaysOnce(p.stores[0], "enqueue", validity)
		h := hold(t, p.engines[0], sharing(1, WaitForever))
		release(t, h)
		if got := limitOf(h.Token()); got != 1 {
			t.Errorf("the token %q has limit %d", h.Token(), got)
		}
		time.Sleep(time.Second)
		p.checkIdle(t)
	})
}

// All hints are lost. The first waiter of a process finds its grant by its own check, and
// then all others check, too.
func TestSharedWaitersSurviveLostHints(t *testing.T) {
	t.Parallel()
	for _, limit := range []store.Limit{20, store.Unlimited} {
		t.Run(fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(2)
				p.server.hintsLost = true
				r := request(0)
				r.TTL = 2 * time.Second
				writer := hold(t, p.engines[0], r)
				begun := time.Now()
				latest := make(chan time.Duration, 20)
				for range cap(latest) {
					waiting(t, p.engines[1], sharing(limit, WaitForever), func(*Hold) {
						latest <- time.Since(begun)
						time.Sleep(10 * time.Second)
					})
				}
				time.Sleep(time.Second)
				release(t, writer)
				time.Sleep(8 * time.Second)
				synctest.Wait()
				if n := len(latest); n != cap(latest) {
					t.Fatalf("%d are served", n)
				}
				for range cap(latest) {
					if after := <-latest; after > 3*time.Second {
						t.Errorf("served after %v", after)
					}
				}
				time.Sleep(10 * time.Second)
				p.checkIdle(t)
			})
		})
	}
}

// A queue that skips checks still checks in time that it has its place in the store's queue.
func TestLostPlacesOfSharedWaitersAreTakenAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		writer := hold(t, p.engines[0], request(0))
		for range 5 {
			waiting(t, p.engines[1], sharing(store.Unlimited, WaitForever), func(*Hold) {})
		}
		p.server.mu.Lock()
		p.server.queues["k"] = p.server.queues["k"][:1]
		p.server.mu.Unlock()
		time.Sleep((maxSkippedChecks + 1) * (recheckInterval + recheckInterval/4))
		if queue := p.server.queue("k"); len(queue) != 5 {
			t.Errorf("the queue is %v", queue)
		}
		release(t, writer)
		time.Sleep(time.Second)
		p.checkIdle(t)
	})
}

// While many wait for shared leases, mostly the first one checks the key.
func TestWaitingForSharedLeasesCostsFewCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		writer := hold(t, p.engines[0], request(0))
		for range maxAcquiring {
			waiting(t, p.engines[1], sharing(store.Unlimited, WaitForever), func(*Hold) {})
		}
		before := len(p.stores[1].transitions())
		time.Sleep(time.Minute)
		if got, most := len(p.stores[1].transitions())-before, 60+60*maxAcquiring/(maxSkippedChecks+1); got > most {
			t.Errorf("%d commands in a minute, want at most %d", got, most)
		}
		release(t, writer)
		time.Sleep(time.Second)
		p.checkIdle(t)
	})
}

// Messages may have been lost: all queues of the key check it.
func TestHintWithoutTokenWakesAllSharedWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		writer := hold(t, p.engines[0], request(0))
		for range 5 {
			waiting(t, p.engines[1], sharing(store.Unlimited, WaitForever), func(*Hold) {})
		}
		before := p.stores[1].count("enqueue")
		p.stores[1].hint("k", "")
		synctest.Wait()
		if got := p.stores[1].count("enqueue") - before; got != 5 {
			t.Errorf("%d requests, want 5", got)
		}
		release(t, writer)
		time.Sleep(time.Second)
		p.checkIdle(t)
	})
}

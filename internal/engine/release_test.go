package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The lease is lost while its holder runs, and a server that restores old data
// holds the token again. The release of such a hold returns at once, because the
// loss is known. The engine frees the key as soon as the store replies.
func TestReleaseAfterLossDoesNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		request Request
		finish  func(h *Hold) (Loss, error)
		want    Loss
	}{
		{"a lock", request(0), func(h *Hold) (Loss, error) { return h.Release(context.Background()) }, Taken},
		// The loss that End returns is about the ending only.
		{"an interrupted attempt", attempt("f", 0), func(h *Hold) (Loss, error) { return h.End(context.Background(), EndUnknown, nil) }, NotLost},
	} {
		row(t, test.name, func(t *testing.T) {
			p := newProcesses(1)
			h := hold(t, p.engines[0], test.request)
			p.server.set("k", "", 0)
			<-h.Context().Done()
			p.server.set("k", h.Token(), time.Hour)
			const outage = time.Second
			failsFor(p.stores[0], outage, "release")
			begun := time.Now()
			loss, err := test.finish(h)
			if took := time.Since(begun); loss != test.want || err != nil || took > 0 {
				t.Errorf("loss %v, error %v after %v, want %v at once", loss, err, took, test.want)
			}
			sleep(outage + maxPause)
			if tries := p.stores[0].begunCount("release"); tries < 2 {
				t.Errorf("%d releases sent, want one more after the outage", tries)
			}
			p.checkIdle(t)
		})
	}
}

// A process was paused and continues. Its holder releases before the timer of the lease
// fires. The lease has ended, so it is not passed on, and the release reports the loss.
func TestReleaseAfterValidityReportsLoss(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		r := request(0)
		r.Renew = false
		h := hold(t, p.engines[0], r)
		var token string
		waiting(t, p.engines[0], request(WaitForever), func(next *Hold) { token = next.Token() })
		h.shard.mu.Lock()
		h.lease.budget.unlimited = true     // no other process waits
		p.engines[0].schedule.drop(h.lease) // as if the timer were late
		h.shard.mu.Unlock()
		time.Sleep(r.TTL)
		releaseLost(t, h, Taken)
		sleep(2 * time.Second)
		if token == "" || token == h.Token() {
			t.Errorf("the waiter was served under the token %q after %q", token, h.Token())
		}
		p.checkIdle(t)
	})
}

func TestFailedReleaseIsResent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, events := newEngine()
		h := hold(t, e, request(0))
		s.before.set(failsUntil(time.Now().Add(2*time.Second), errDown))
		if loss, err := h.Release(t.Context()); loss != NotLost || !errors.Is(err, errDown) {
			t.Errorf("release: %v, %v", loss, err)
		}
		if released := events.of(Released); len(released) != 1 || !errors.Is(released[0].Err, errDown) {
			t.Errorf("events %v", released)
		}
		time.Sleep(3 * time.Second)
		if s.value("k") != "" {
			t.Error("the key is left to its TTL")
		}
	})
}

// While a token is being released, the reply to a resent take may come. The take may
// have locked the key after the release, or not.
func TestHintDuringReleaseCausesSecondRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, events := newEngine()
		h := hold(t, e, request(0))
		s.before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "release" && s.begunCount("release") == 1 {
				time.Sleep(time.Second)
			}
			return nil
		})
		go func() {
			time.Sleep(time.Millisecond)
			s.hint("k", h.Token())
		}()
		release(t, h)
		synctest.Wait()
		if len(events.of(Lost)) != 0 || s.count("release") != 2 {
			t.Errorf("%d losses, %d releases; want 0 and 2", len(events.of(Lost)), s.count("release"))
		}
	})
}

func TestLostLeaseIsNotReleasedWhileHolderRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		r := request(0)
		r.Renew = false
		h := hold(t, e, r)
		<-h.Context().Done() // lost, but not expired on the server, and its code still runs
		s.set("k", h.Token(), time.Minute)
		refuses(t, e, request(0), Busy)
		s.hint("k", h.Token())
		synctest.Wait()
		if s.value("k") != h.Token() {
			t.Fatal("deleted under running code")
		}
		_, _ = h.Release(t.Context())
		synctest.Wait()
		if s.value("k") != "" || e.queueCount() != 0 {
			t.Errorf("key %q, %d queues", s.value("k"), e.queueCount())
		}
	})
}

func TestReleaseReturnsWhenContextEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		s.before.set(delays(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := h.Release(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		release(t, h) // the second call waits for the result of the first
		if s.value("k") != "" || s.count("release") != 1 {
			t.Errorf("key %q after %d releases", s.value("k"), s.count("release"))
		}
	})
}

func TestReleaseIsSentAfterContextEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		ctx, cancel := context.WithCancel(t.Context())
		h, err := e.Acquire(ctx, request(0))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		_, _ = h.Release(ctx)
		synctest.Wait()
		if s.value("k") != "" {
			t.Error("the key is left to its TTL")
		}
	})
}

func TestReleaseReportsTakenKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, events := newEngine()
		h := hold(t, e, request(0))
		s.set("k", "another", time.Hour)
		releaseLost(t, h, Taken)
		if len(events.of(Lost)) != 1 || len(events.of(Released)) != 1 {
			t.Errorf("events: %v, %v", events.of(Lost), events.of(Released))
		}
	})
}

func TestReleaseIsNotSentDuringRenewal(t *testing.T) {
	t.Parallel()
	for name, renew := range map[string]func(h *Hold){
		"a renewal": func(*Hold) { time.Sleep(request(0).TTL/3 + time.Millisecond) },
		"an Extend": func(h *Hold) { go func() { _, _ = h.Extend(context.Background(), time.Minute) }() },
	} {
		row(t, name, func(t *testing.T) {
			e, s, _ := newEngine()
			h := hold(t, e, request(0))
			s.before.set(delays(bound/2, "renew"))
			renew(h)
			synctest.Wait()
			h.BeginRelease()
			synctest.Wait()
			if n := s.begunCount("release"); n != 0 {
				t.Errorf("%d releases sent while a renewal is in flight", n)
			}
			release(t, h)
			s.checkTransitions(t, "take", "renew", "release")
		})
	}
}

// A nowait caller takes no place in the store's queue.
func TestNowaitCallerDoesNotRejoin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], request(0))
		p.stores[0].before.set(func(transition string, r storetest.AnyRequest) error {
			if transition == "renew" {
				time.Sleep(100 * time.Millisecond)
			}
			if r.Rejoin != "" {
				t.Error("rejoined for one that may not wait")
			}
			return nil
		})
		time.Sleep(request(0).TTL/3 + time.Millisecond) // the release waits for the renewal
		h.BeginRelease()
		release(t, hold(t, p.engines[0], request(0)))
		p.checkIdle(t)
	})
}

func TestAfterLossQueueAsksWithEnqueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], request(0))
		waiting(t, p.engines[0], request(WaitForever), func(*Hold) {})
		p.server.set("k", "another", time.Second)
		sleep(6 * time.Second)
		if n := p.stores[0].count("take"); n != 1 {
			t.Errorf("%d takes, want the first one alone", n)
		}
		_, _ = h.Release(t.Context())
		p.checkIdle(t)
	})
}

func TestRepeatedHintsDiscardOnceMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		dead := deadToken(t, e)
		s.set("k", dead, time.Minute)
		s.after.set(func(string, storetest.AnyRequest) error {
			if s.count("release") == 2 { // the first was the token's own release
				s.set("k", dead, time.Minute) // a late take
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		})
		s.hint("k", dead)
		synctest.Wait()
		for range 100 {
			s.hint("k", dead)
		}
		time.Sleep(time.Second)
		if s.value("k") != "" || s.count("release") != 3 {
			t.Errorf("key %q after %d releases", s.value("k"), s.count("release"))
		}
		_ = e.Close(t.Context())
	})
}

func TestClaimTimes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ bound, ttl, want time.Duration }{
		{500 * time.Millisecond, 10 * time.Second, 2 * time.Second}, // four commands
		{100 * time.Millisecond, 10 * time.Second, time.Second},
		{500 * time.Millisecond, 400 * time.Millisecond, 400 * time.Millisecond},
		{10 * time.Millisecond, 400 * time.Millisecond, 400 * time.Millisecond},
	} {
		e := New(newFakeStore(newFakeServer(), "me"), Config{Bound: test.bound})
		if got := e.claimOf(test.ttl); got != test.want {
			t.Errorf("command bound %v, TTL %v: claim %v, want %v", test.bound, test.ttl, got, test.want)
		}
	}
}

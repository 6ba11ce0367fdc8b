package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// fenced is a request with a fencing number.
func fenced(wait time.Duration) Request {
	r := request(wait)
	r.Fencing = true
	return r
}

func TestFencesAreDrawnFromReservation(t *testing.T) {
	t.Parallel()
	f := newFences(100, maxFences)
	for i := range int64(maxFences) {
		if n := f.draw(store.Exclusive); n != 100+i {
			t.Fatalf("drew %d, want %d", n, 100+i)
		}
		half := int64(maxFences-maxFences/2) - 1
		if wanted := f.toReserve(fenced(0), 2) > 0; wanted != (i >= half) {
			t.Errorf("after %d draws more are wanted: %v", i+1, wanted)
		}
	}
	if none := newFences(0, 0); !f.empty() || !none.empty() || f.toReserve(request(0), 2) != 0 {
		t.Error("numbers are left, or are wanted for a request without Fencing")
	}
}

func TestReservationSizes(t *testing.T) {
	t.Parallel()
	for callers, want := range map[int]struct{ question, renewal int }{
		0: {0, 0}, 1: {1, maxFences}, 2: {maxFences, maxFences}, 1000: {maxFences, maxFences},
	} {
		if got := firstReservation(store.Exclusive, callers); got != want.question {
			t.Errorf("%d callers: a question wants %d numbers, want %d", callers, got, want.question)
		}
		if got := (&fences{}).toReserve(fenced(0), callers); got != want.renewal {
			t.Errorf("%d callers: a renewal wants %d numbers, want %d", callers, got, want.renewal)
		}
	}
}

// Two callers that come back for the lock take turns on one reservation.
func TestTwoCallersShareNumbers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, fenced(0))
		passesUnlimited(h)
		for range maxPasses {
			next := make(chan *Hold)
			go func() { next <- hold(t, e, fenced(WaitForever)) }()
			synctest.Wait()
			release(t, h)
			h = <-next
		}
		release(t, h)
		if got := s.count("renew"); got != 1 {
			t.Errorf("%d renewals for %d passes, want one", got, maxPasses)
		}
	})
}

func TestReservationsNeverFall(t *testing.T) {
	t.Parallel()
	f := fences{100, 110}
	for _, step := range []struct {
		name  string
		first int64
		count int
		want  fences
	}{
		{"an overtaken reply", 90, 10, fences{100, 110}},
		{"the same reply again", 100, 10, fences{100, 110}},
		{"numbers of which some were given before", 105, 10, fences{110, 115}},
		{"the next numbers", 115, 1, fences{115, 116}},
		{"numbers after a pause", 1000, 65, fences{1000, 1065}},
		{"no numbers", 0, 0, fences{1000, 1065}},
	} {
		if f.add(step.first, step.count); f != step.want {
			t.Fatalf("%s: %+v, want %+v", step.name, f, step.want)
		}
	}
}

// The store reserves fewer numbers than wanted if they would run ahead of its clock.
// Each holder gets a number that was reserved for it.
func TestSmallReservationsSuffice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.fencesAtOnce = 1
		h := hold(t, e, fenced(0))
		var got []int64
		for range 3 {
			waiting(t, e, fenced(WaitForever), func(h *Hold) { got = append(got, h.Fence()) })
		}
		release(t, h)
		synctest.Wait()
		if want := []int64{2, 3, 4}; !slices.Equal(got, want) || h.Fence() != 1 {
			t.Errorf("numbers %v after %d, want %v", got, h.Fence(), want)
		}
		s.checkTransitions(t, "enqueue", "renew", "renew", "renew", "release")
	})
}

// The counter was lost, and the server's clock has stepped back. Then numbers fall, but
// each holder gets one, and no waiter asks without end.
func TestFencesAfterLostCounterAreUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.locked(func() { s.fences["k"] = 1000 })
		h := hold(t, e, fenced(0))
		s.locked(func() { s.fences["k"] = 0 })
		var fence int64
		waiting(t, e, fenced(WaitForever), func(h *Hold) { fence = h.Fence() })
		release(t, h)
		synctest.Wait()
		if h.Fence() != 1001 || fence != 1 || s.count("renew") != 1 {
			t.Errorf("numbers %d and %d after %d renewals, want 1001 and 1 after one", h.Fence(), fence, s.count("renew"))
		}
	})
}

func TestSuccessorReservesItsOwnFence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.before.set(delays(100*time.Millisecond, "take"))
		cancel := leaving(t, e, request(WaitForever))
		var fence int64
		waiting(t, e, fenced(WaitForever), func(h *Hold) { fence = h.Fence() })
		cancel()
		sleep(time.Second)
		if want := []string{"take", "renew", "release"}; !slices.Equal(s.transitions(), want) || fence != 1 {
			t.Errorf("fence %d, transitions %v, want %v", fence, s.transitions(), want)
		}
	})
}

func TestKeptKeyKeepsFences(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, fenced(0))
		h.shard.mu.Lock()
		h.lease.fences = newFences(h.Fence()+1, 1)
		h.shard.mu.Unlock()
		time.Sleep(time.Second) // the budget is spent
		var fence int64
		waiting(t, e, fenced(WaitForever), func(h *Hold) { fence = h.Fence() })
		release(t, h)
		synctest.Wait()
		if want := []string{"enqueue", "release", "release"}; !slices.Equal(s.transitions(), want) || fence != h.Fence()+1 {
			t.Errorf("fence %d after %d, transitions %v, want %v", fence, h.Fence(), s.transitions(), want)
		}
	})
}

func TestRenewalReservesFencesForWaiters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _, _ := newEngine()
		h := hold(t, e, fenced(0))
		left := func(used int64) fences {
			h.shard.mu.Lock()
			defer h.shard.mu.Unlock()
			h.lease.fences.next += used
			return h.lease.fences
		}
		time.Sleep(request(0).TTL / 2)
		if got := left(0); got != (fences{2, 2}) {
			t.Errorf("numbers %+v were reserved without a waiter", got)
		}
		for range 2 {
			waiting(t, e, fenced(WaitForever), func(*Hold) {})
		}
		time.Sleep(request(0).TTL / 2)
		if got := left(maxFences/2 - 1); got != (fences{1 + maxFences/2, 2 + maxFences}) {
			t.Fatalf("for the waiters %+v are left", got)
		}
		time.Sleep(request(0).TTL / 2)
		if got := left(2); got != (fences{3 + maxFences/2, 2 + maxFences}) {
			t.Fatalf("of more than half, %+v are left", got)
		}
		time.Sleep(request(0).TTL / 2)
		if got := left(0); got != (fences{2 + maxFences, 2 + 2*maxFences}) || h.Fence() != 1 {
			t.Errorf("%+v are left, the holder has %d", got, h.Fence())
		}
		release(t, h)
		synctest.Wait()
	})
}

func TestFencesRise(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(3)
		r := fenced(WaitForever)
		h := hold(t, p.engines[0], r)
		last := h.Fence()
		if last == 0 {
			t.Fatal("no fence")
		}
		served := 0
		for i := range 2 * maxPasses {
			for n, e := range p.engines {
				r := r
				r.Renew = (i+n)%5 != 0 // a successor without renewal needs a renewal before the pass
				waiting(t, e, r, func(h *Hold) {
					if h.Fence() <= last {
						t.Errorf("fence %d after %d", h.Fence(), last)
					}
					last = h.Fence()
					served++
				})
			}
		}
		release(t, h)
		synctest.Wait()
		if served != 6*maxPasses {
			t.Errorf("%d served", served)
		}
		h = hold(t, p.engines[0], request(0))
		if h.Fence() != 0 {
			t.Error("a fence without Fencing")
		}
		release(t, h)
		p.checkIdle(t)
	})
}

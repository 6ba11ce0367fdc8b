package engine

import (
	"context"
	"slices"
	"sync/atomic"
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

func TestNumbersAreDrawnFromTheBlockAndNotBeyond(t *testing.T) {
	f := newFences(100)
	for i := range int64(fenceBlock) {
		if n := f.draw(); n != 100+i {
			t.Fatalf("drew %d, want %d", n, 100+i)
		}
		half := int64(fenceBlock-fenceBlock/2) - 1
		if wanted := f.wanted(fenced(0)) > 0; wanted != (i >= half) {
			t.Errorf("after %d draws more are wanted: %v", i+1, wanted)
		}
	}
	if none := newFences(0); !f.empty() || !none.empty() || f.wanted(request(0)) != 0 {
		t.Error("there are numbers left, or some are wanted for one who wants none")
	}
}

func TestAUsedUpBlockIsRenewedBeforeAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, fenced(0))
		h.lease.fences.next = h.lease.fences.end
		var fence int64
		waiting(t, e, fenced(WaitForever), func(h *Hold) { fence = h.Fence() })
		release(t, h)
		synctest.Wait()
		if want := []string{"enqueue", "renew", "release"}; !slices.Equal(s.transitions(), want) || fence != fenceBlock+1 {
			t.Errorf("fence %d, transitions %v, want %v", fence, s.transitions(), want)
		}
	})
}

func TestAGrantThatWasAskedForWithoutNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.before.set(func(transition string, _ store.Request) error {
			if transition == "take" {
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = e.Acquire(ctx, request(WaitForever)) }()
		synctest.Wait()
		var fence int64
		waiting(t, e, fenced(WaitForever), func(h *Hold) { fence = h.Fence() })
		cancel()
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []string{"take", "renew", "release"}; !slices.Equal(s.transitions(), want) || fence != 1 {
			t.Errorf("fence %d, transitions %v, want %v", fence, s.transitions(), want)
		}
	})
}

func TestAKeptKeyKeepsItsNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, fenced(0))
		time.Sleep(time.Second) // the budget is over
		var fence int64
		waiting(t, e, fenced(WaitForever), func(h *Hold) { fence = h.Fence() })
		release(t, h)
		synctest.Wait()
		if want := []string{"enqueue", "release", "release"}; !slices.Equal(s.transitions(), want) || fence != h.Fence()+1 {
			t.Errorf("fence %d after %d, transitions %v, want %v", fence, h.Fence(), s.transitions(), want)
		}
	})
}

func TestARenewalFetchesTheNextBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, _ := newEngine()
		h := hold(t, e, fenced(0))
		next := func(used int64) (next int64) {
			h.line.shard.mu.Lock()
			defer h.line.shard.mu.Unlock()
			h.lease.fences.next += used
			return h.lease.fences.next
		}
		time.Sleep(request(0).TTL / 2)
		if got := next(fenceBlock / 2); got != 2+fenceBlock/2 {
			t.Errorf("a fresh block was replaced: next is %d", got)
		}
		time.Sleep(request(0).TTL / 2)
		if got := next(0); got != fenceBlock+1 || h.Fence() != 1 {
			t.Errorf("next is %d, the holder's own %d", got, h.Fence())
		}
		release(t, h)
	})
}

// Two renewals are on their way: one for the holder, and one for the next holder,
// for whom no number is left. The reply to the earlier one comes last.
func TestALateRenewalDoesNotBringOldNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		var first atomic.Bool
		s.after.set(func(transition string, _ store.Request) error {
			if transition == "renew" && first.CompareAndSwap(false, true) {
				time.Sleep(300 * time.Millisecond)
			}
			return nil
		})
		h := hold(t, e, fenced(0))
		h.line.shard.mu.Lock()
		h.lease.fences.next = h.lease.fences.end
		h.lease.budget.unlimited = true // nobody else waits
		h.line.shard.mu.Unlock()
		time.Sleep(request(0).TTL/3 + time.Millisecond)
		synctest.Wait()
		var last atomic.Int64
		for range 3 {
			waiting(t, e, fenced(WaitForever), func(h *Hold) {
				if before := last.Swap(h.Fence()); h.Fence() <= before {
					t.Errorf("fence %d after %d", h.Fence(), before)
				}
				time.Sleep(400 * time.Millisecond)
			})
		}
		release(t, h)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if want := []string{"enqueue", "renew", "renew", "release"}; !slices.Equal(s.transitions(), want) {
			t.Errorf("transitions %v, want %v", s.transitions(), want)
		}
	})
}

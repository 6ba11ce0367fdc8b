package engine

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// startWaiters makes n callers wait. It returns how many of them were refused
// at once, by reason.
func startWaiters(t *testing.T, e *Engine, r Request, n int) (refused map[Reason]int) {
	t.Helper()
	var mu sync.Mutex
	refused = make(map[Reason]int)
	begun := time.Now()
	for range n {
		go func() {
			h, err := e.Acquire(t.Context(), r)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				refused[reasonOf(t, err)]++
				if time.Since(begun) > storeDelay {
					t.Errorf("refused after %v", time.Since(begun))
				}
				return
			}
			release(t, h)
		}()
		synctest.Wait()
	}
	sleep(2 * storeDelay)
	return refused
}

// waiterOf returns the request of a waiter for a key in a queue of at most n.
func waiterOf(key string, n int) Request {
	r := request(WaitForever)
	r.Key, r.MaxWaiters = key, n
	return r
}

// storeDelay is how long a slow store takes to answer.
const storeDelay = time.Millisecond

func TestWaitersOfOneKeyAreLimited(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		own   bool          // a caller of this process holds the key
		delay time.Duration // of the first reply: the other callers come meanwhile
	}{
		"behind a holder of this process":               {own: true},
		"behind a holder of another process":            {},
		"before it is known that another holds the key": {delay: storeDelay},
	} {
		row(t, name, func(t *testing.T) {
			e, s, _ := newEngine()
			var h *Hold
			if test.own {
				h = hold(t, e, request(0))
			} else {
				s.set("k", "foreign", time.Hour)
			}
			if test.delay > 0 {
				s.before.set(delays(test.delay, "take"))
			}
			if refused := startWaiters(t, e, waiterOf("k", 5), 8); refused[QueueFull] != 3 || len(refused) != 1 {
				t.Errorf("refused %v, want 3 of 8", refused)
			}
			refuses(t, e, request(0), Busy)
			if test.own {
				release(t, h)
			} else {
				s.set("k", "", 0)
			}
			time.Sleep(time.Minute)
			if refused := startWaiters(t, e, waiterOf("k", 5), 1); len(refused) != 0 || e.limits.waiting.Load() != 0 {
				t.Errorf("the queue is empty again: refused %v", refused)
			}
		})
	}
}

func TestWaitersOfAllKeysAreLimited(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		e.limits.total = 5
		for _, key := range []string{"a", "b", "c"} {
			s.set(key, "foreign", time.Minute)
		}
		if refused := startWaiters(t, e, waiterOf("a", 1000), 3); len(refused) != 0 {
			t.Errorf("refused %v", refused)
		}
		if refused := startWaiters(t, e, waiterOf("b", 1000), 3); refused[Overloaded] != 1 || len(refused) != 1 {
			t.Errorf("refused %v, want 1", refused)
		}
		if refused := startWaiters(t, e, waiterOf("c", 1000), 1); refused[Overloaded] != 1 {
			t.Errorf("refused %v: the first waiter of a queue has to wait, too", refused)
		}
		// A caller that does not have to wait is not refused.
		for _, key := range []string{"d", "e", "f", "g", "h", "i"} {
			r := request(WaitForever)
			r.Key = key
			h, err := e.Acquire(t.Context(), r)
			if err != nil {
				t.Fatalf("a free key: %v", err)
			}
			defer release(t, h)
		}
		time.Sleep(2 * time.Minute)
		if refused := startWaiters(t, e, waiterOf("a", 1000), 5); len(refused) != 0 || e.limits.waiting.Load() != 0 {
			t.Errorf("the queues are empty again: refused %v", refused)
		}
	})
}

// The limit of a queue is that of the request, and a caller that leaves makes room.
func TestLeavingCallerMakesRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _, _ := newEngine()
		e.limits.total = 2
		h := hold(t, e, request(0))
		cancel := leaving(t, e, waiterOf("k", 1))
		for _, step := range []struct {
			most    int
			refused Reason // 0: it waits
		}{{1, QueueFull}, {2, 0}, {3, Overloaded}} {
			if refused := startWaiters(t, e, waiterOf("k", step.most), 1); len(refused) != 0 != (step.refused != 0) || step.refused != 0 && refused[step.refused] != 1 {
				t.Errorf("at most %d waiters: refused %v", step.most, refused)
			}
		}
		cancel()
		synctest.Wait()
		if refused := startWaiters(t, e, waiterOf("k", 2), 1); len(refused) != 0 {
			t.Errorf("refused %v", refused)
		}
		release(t, h)
		synctest.Wait()
	})
}

// A caller for which there is no room takes no place in the store's queue.
func TestCallerWithoutRoomTakesNoPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for want, limit := range map[Reason]func(*Engine, *Request){
			Overloaded: func(e *Engine, _ *Request) { e.limits.total = 0 },
			QueueFull:  func(_ *Engine, r *Request) { r.MaxWaiters = 0 },
		} {
			e, s, _ := newEngine()
			r := request(store.InlineTime - 1)
			limit(e, &r)
			s.set("k", "other:1", time.Hour)
			_, err := e.Acquire(t.Context(), r)
			if reasonOf(t, err) != want {
				t.Errorf("%v", err)
			}
			synctest.Wait()
			s.checkTransitions(t, "take")
		}
	})
}

// The waiters come before it is known that the first one has to wait. If there is no room
// for that one, the last waiter is refused that allows no more waiters.
func TestLastWaiterWithoutRoomIsRefused(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]struct {
		most    []int
		refused int // its index
	}{
		"equal limits":                        {[]int{2, 2, 2}, 2},
		"the last allows more":                {[]int{2, 2, 9}, 1},
		"the first allows fewer":              {[]int{1, 9, 9}, 0},
		"the first allows fewer than another": {[]int{1, 2, 9}, 0},
	} {
		row(t, name, func(t *testing.T) {
			e, s, _ := newEngine()
			s.set("k", "foreign", time.Minute)
			delaysOnce(s, "take", storeDelay)
			var results []<-chan error
			for _, most := range limits.most {
				r := request(WaitForever)
				r.MaxWaiters = most
				results = append(results, acquiring(t, e, r))
			}
			sleep(2 * storeDelay)
			for i, result := range results {
				if refused := len(result) == 1; refused != (i == limits.refused) {
					t.Errorf("waiter %d refused: %v", i, refused)
				}
			}
			for _, result := range results {
				if err := <-result; err != nil && reasonOf(t, err) != QueueFull {
					t.Error(err)
				}
			}
		})
	}
}

package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
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
	time.Sleep(2 * storeDelay)
	synctest.Wait()
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
	for name, start := range map[string]func(*testing.T, *Engine, *fakeStore) (free func()){
		"behind a holder of this process": func(t *testing.T, e *Engine, _ *fakeStore) func() {
			h := hold(t, e, request(0))
			return func() { release(t, h) }
		},
		"behind a holder of another process": func(_ *testing.T, _ *Engine, s *fakeStore) func() {
			s.set("k", "foreign", time.Hour)
			return func() { s.set("k", "", 0) }
		},
		"before it is known that another holds the key": func(_ *testing.T, _ *Engine, s *fakeStore) func() {
			s.set("k", "foreign", time.Hour)
			s.before.set(func(transition string, _ storetest.AnyRequest) error {
				if transition == "take" {
					time.Sleep(storeDelay) // the other callers come meanwhile
				}
				return nil
			})
			return func() { s.set("k", "", 0) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, s, _ := newEngine()
				free := start(t, e, s)
				if refused := startWaiters(t, e, waiterOf("k", 5), 8); refused[QueueFull] != 3 || len(refused) != 1 {
					t.Errorf("refused %v, want 3 of 8", refused)
				}
				if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy {
					t.Errorf("a nowait caller: %v", err)
				}
				free()
				time.Sleep(time.Minute)
				if refused := startWaiters(t, e, waiterOf("k", 5), 1); len(refused) != 0 || e.limits.waiting.Load() != 0 {
					t.Errorf("the queue is empty again: refused %v", refused)
				}
			})
		})
	}
}

func TestWaitersOfAllKeysAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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

// If several callers come while the first one asks, the last of them is refused to make
// room for the first.
func TestFirstWaiterKeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", "foreign", time.Second)
		s.before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "take" {
				time.Sleep(storeDelay)
			}
			return nil
		})
		var reasons [3]Reason
		for i := range reasons {
			go func() {
				h, err := e.Acquire(t.Context(), waiterOf("k", 2))
				if err != nil {
					reasons[i] = reasonOf(t, err)
					return
				}
				release(t, h)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := [3]Reason{0, 0, QueueFull}; reasons != want {
			t.Errorf("refused %v, want %v", reasons, want)
		}
	})
}

func TestLeavingCallerMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _, _ := newEngine()
		e.limits.total = 1
		h := hold(t, e, request(0))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = e.Acquire(ctx, waiterOf("k", 1)) }()
		synctest.Wait()
		if refused := startWaiters(t, e, waiterOf("k", 1), 1); refused[QueueFull] != 1 {
			t.Errorf("refused %v", refused)
		}
		cancel()
		synctest.Wait()
		if refused := startWaiters(t, e, waiterOf("k", 1), 1); len(refused) != 0 {
			t.Errorf("refused %v", refused)
		}
		release(t, h)
		synctest.Wait()
	})
}

package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// crowd lets so many callers wait for a key at once, and returns how many of
// them were refused, by reason, at once.
func startWaiters(t *testing.T, e *Engine, key string, n int) (refused map[Reason]int) {
	t.Helper()
	var mu sync.Mutex
	refused = make(map[Reason]int)
	begun := time.Now()
	for range n {
		go func() {
			r := request(WaitForever)
			r.Key = key
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

// aMoment is how long the store takes where it does not answer at once.
const storeDelay = time.Millisecond

//faults:row 32
func TestTheLineIsBounded(t *testing.T) {
	for name, start := range map[string]func(*testing.T, *Engine, *fakeStore) (free func()){
		"behind a holder here": func(t *testing.T, e *Engine, _ *fakeStore) func() {
			h := hold(t, e, request(0))
			return func() { release(t, h) }
		},
		"behind a holder elsewhere": func(_ *testing.T, _ *Engine, s *fakeStore) func() {
			s.set("k", "foreign", time.Hour)
			return func() { s.set("k", "", 0) }
		},
		"before it is known that another holds the key": func(_ *testing.T, _ *Engine, s *fakeStore) func() {
			s.set("k", "foreign", time.Hour)
			s.before.set(func(transition string, _ store.Request) error {
				if transition == "take" {
					time.Sleep(storeDelay) // the others come meanwhile
				}
				return nil
			})
			return func() { s.set("k", "", 0) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, s, _ := newEngine()
				e.limits.perKey = 5
				free := start(t, e, s)
				if refused := startWaiters(t, e, "k", 8); refused[QueueFull] != 3 || len(refused) != 1 {
					t.Errorf("refused %v, want 3 of 8", refused)
				}
				if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy {
					t.Errorf("one that does not wait: %v", err)
				}
				free()
				time.Sleep(time.Minute)
				if refused := startWaiters(t, e, "k", 1); len(refused) != 0 || e.limits.waiting.Load() != 0 {
					t.Errorf("the line is empty again: refused %v", refused)
				}
			})
		})
	}
}

//faults:row 32
func TestAllLinesTogetherAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		e.limits.total = 5
		for _, key := range []string{"a", "b", "c"} {
			s.set(key, "foreign", time.Minute)
		}
		if refused := startWaiters(t, e, "a", 3); len(refused) != 0 {
			t.Errorf("refused %v", refused)
		}
		if refused := startWaiters(t, e, "b", 3); refused[Overloaded] != 1 || len(refused) != 1 {
			t.Errorf("refused %v, want 1", refused)
		}
		if refused := startWaiters(t, e, "c", 1); refused[Overloaded] != 1 {
			t.Errorf("refused %v: the first of a line has to wait as well", refused)
		}
		// Who does not have to wait is not refused.
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
		if refused := startWaiters(t, e, "a", 5); len(refused) != 0 || e.limits.waiting.Load() != 0 {
			t.Errorf("the lines are empty again: refused %v", refused)
		}
	})
}

// Of those who come while the first one asks, the last one makes room for it.
func TestTheFirstOfALineKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		e.limits.perKey = 2
		s.set("k", "foreign", time.Second)
		s.before.set(func(transition string, _ store.Request) error {
			if transition == "take" {
				time.Sleep(storeDelay)
			}
			return nil
		})
		var reasons [3]Reason
		for i := range reasons {
			go func() {
				h, err := e.Acquire(t.Context(), request(WaitForever))
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

func TestALeaverMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, _ := newEngine()
		e.limits.perKey, e.limits.total = 1, 1
		h := hold(t, e, request(0))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = e.Acquire(ctx, request(WaitForever)) }()
		synctest.Wait()
		if refused := startWaiters(t, e, "k", 1); refused[QueueFull] != 1 {
			t.Errorf("refused %v", refused)
		}
		cancel()
		synctest.Wait()
		if refused := startWaiters(t, e, "k", 1); len(refused) != 0 {
			t.Errorf("refused %v", refused)
		}
		release(t, h)
		synctest.Wait()
	})
}

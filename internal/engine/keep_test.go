package engine

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// minHold is how long the tests keep a key locked at least.
const minHold = 10 * time.Second

// keeping returns the request of a caller that keeps its key locked.
func keeping(wait time.Duration) Request {
	r := request(wait)
	r.MinHold = minHold
	return r
}

func TestKeyStaysLockedForTheMinimalHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		begun := time.Now()
		h := hold(t, p.engines[0], keeping(0))
		waits := acquiring(t, p.engines[0], request(WaitForever))
		other := acquiring(t, p.engines[1], request(WaitForever))
		time.Sleep(4*time.Second + 100*time.Microsecond)
		release(t, h)
		synctest.Wait()
		for i, e := range p.engines {
			if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy {
				t.Errorf("process %d: %v", i, err)
			}
			h.engine.onHint("k", h.Token()) // forged
		}
		time.Sleep(minHold - time.Since(begun) - time.Microsecond)
		if len(waits) != 0 || len(other) != 0 || p.server.value("k") == "" {
			t.Fatalf("a waiter got the key after %v", time.Since(begun))
		}
		for _, result := range []<-chan error{waits, other} {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
		if late := time.Since(begun) - minHold; late > 2*time.Second {
			t.Errorf("the waiters got the key %v after the end", late)
		}
		time.Sleep(time.Minute)
		p.checkIdle(t)
	})
}

func TestReleaseAfterTheMinimalHoldFreesTheKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, keeping(0))
		waits := acquiring(t, e, request(WaitForever))
		time.Sleep(minHold)
		release(t, h)
		synctest.Wait()
		if want := []string{"take", "renew", "renew", "renew", "release"}; len(waits) != 1 || s.value("k") != "" || !slices.Equal(s.transitions(), want) {
			t.Errorf("the lease was not passed on; the key has %q, transitions %v", s.value("k"), s.transitions())
		}
	})
}

// A caller that did not use the lease leaves no locked key.
func TestUnusedLeaseIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, keeping(0))
		h.WaiveMinHold()
		release(t, h)
		if s.value("k") != "" {
			t.Error("the key is locked")
		}
		r := keeping(0)
		r.Attempt = &Attempt{Fingerprint: []byte("a"), Keep: time.Hour}
		release(t, hold(t, e, r))
		if s.value("k") != "" {
			t.Error("the key of an attempt is locked")
		}
	})
}

// A caller whose context ends at the moment of the grant has not used the lease.
func TestLeaseOfCallerThatLeftIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		ctx, cancel := context.WithCancel(t.Context())
		s.after.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "take" {
				cancel()
			}
			return nil
		})
		s.inline = true // so that the caller finds its context ended after the grant
		if _, err := e.Acquire(ctx, keeping(0)); reasonOf(t, err) != TimedOut {
			t.Error(err)
		}
		synctest.Wait()
		if s.value("k") != "" {
			t.Error("the key is locked")
		}
	})
}

func TestWaitersAreLimitedByTheirRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _, _ := newEngine()
		h := hold(t, e, request(0))
		few := request(WaitForever)
		few.MaxWaiters = 1
		first := acquiring(t, e, few)
		if _, err := e.Acquire(t.Context(), few); reasonOf(t, err) != QueueFull {
			t.Errorf("the second waiter of a queue of one: %v", err)
		}
		second := acquiring(t, e, request(WaitForever))
		release(t, h)
		for _, result := range []<-chan error{first, second} {
			if err := <-result; err != nil {
				t.Error(err)
			}
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, s, _ := newEngine()
				s.set("k", "foreign", time.Minute)
				delaysOnce(s, "take", storeDelay)
				var results []<-chan error
				for _, most := range limits.most {
					r := request(WaitForever)
					r.MaxWaiters = most
					results = append(results, acquiring(t, e, r))
				}
				time.Sleep(2 * storeDelay)
				synctest.Wait()
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
		})
	}
}

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
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		begun := time.Now()
		h := hold(t, p.engines[0], keeping(0))
		waits := acquiring(t, p.engines[0], request(WaitForever))
		other := acquiring(t, p.engines[1], request(WaitForever))
		time.Sleep(4*time.Second + 100*time.Microsecond)
		release(t, h)
		synctest.Wait()
		for _, e := range p.engines {
			refuses(t, e, request(0), Busy)
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
	bubble(t, func(t *testing.T) {
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

// MinHold keeps no key of an attempt, of a shared lease, or of a caller that did not use its lease.
func TestLeaseIsNotKept(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *Request){
		"unused":     func(*Request) {},
		"an attempt": func(r *Request) { r.Attempt = &Attempt{Fingerprint: []byte("a"), Keep: time.Hour} },
		"shared":     func(r *Request) { r.Limit = 2 },
	} {
		row(t, name, func(t *testing.T) {
			p, r := newProcesses(1), keeping(0)
			change(&r)
			h := hold(t, p.engines[0], r)
			if name == "unused" {
				h.WaiveMinHold()
			}
			release(t, h)
			p.checkIdle(t)
		})
	}
}

// A caller whose context ends at the moment of the grant has not used the lease.
func TestLeaseOfCallerThatLeftIsNotKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
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

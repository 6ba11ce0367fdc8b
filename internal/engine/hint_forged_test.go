package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// deadToken returns a token of the engine that was released, for the key of request.
func deadToken(t *testing.T, e *Engine) string {
	t.Helper()
	h := hold(t, e, request(0))
	release(t, h)
	return h.Token()
}

// Another client of the server publishes the token that the process issues next, and
// publishes it again once it is issued. The releases are slow.
func TestForgedHintReleasesNoLease(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(n int) string{
		"the next token":               func(n int) string { return fmt.Sprint("me:", n) },
		"the next token with a zero":   func(n int) string { return fmt.Sprint("me:0", n) },
		"the next token with a suffix": func(n int) string { return fmt.Sprint("me:", n, ":1") },
		"no number":                    func(int) string { return "me:" },
		"the greatest number":          func(int) string { return "me:18446744073709551615" },
		"a number that is too big":     func(int) string { return "me:18446744073709551616" },
		"a token of another process":   func(n int) string { return fmt.Sprint("you:", n) },
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
				for n := range 3 {
					forged := forge(n + 1)
					s.hint("k", forged)
					s.hint("k", forged)
					synctest.Wait()
					h := hold(t, e, request(0))
					for range 10 {
						s.hint("k", forged)
						time.Sleep(30 * time.Millisecond)
					}
					if value := s.value("k"); value != h.Token() {
						t.Fatalf("the key holds %q under the holder of %q", value, h.Token())
					}
					release(t, h)
				}
				if got := s.count("release"); got != 3 || len(events.of(Lost)) != 0 {
					t.Errorf("%d releases of 3 leases, %d losses", got, len(events.of(Lost)))
				}
			})
		})
	}
}

// The value of a key names a token that is not issued yet: another client wrote it.
func TestForgedValueIsNotReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", "me:3", time.Second) // the queue asks as me:1
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy {
			t.Errorf("got %v", err)
		}
		if s.count("release") != 0 || s.value("k") != "me:3" {
			t.Errorf("%d releases, and the key holds %q", s.count("release"), s.value("k"))
		}
	})
}

// A hint of a token that was never issued does not make a waiter ask.
func TestForgedHintOfAnUnissuedTokenIsIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) {})
		time.Sleep(time.Millisecond) // until its request has been answered
		asked := p.stores[1].count("enqueue")
		h.shard.mu.Lock()
		h.lease.othersWait = false
		h.shard.mu.Unlock()
		for range 10 {
			p.stores[0].hint("k", "p0:99")
			p.stores[1].hint("k", "p1:99")
		}
		synctest.Wait()
		h.shard.mu.Lock()
		wanted := h.lease.othersWait
		h.shard.mu.Unlock()
		if got := p.stores[1].count("enqueue"); got != asked || wanted {
			t.Errorf("%d requests of the waiter, and the holder assumes that others wait: %v", got-asked, wanted)
		}
		release(t, h)
		time.Sleep(time.Second)
		p.checkIdle(t)
	})
}

// discard does not release a token that a queue owns.
func TestDiscardReleasesNoOwnedToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		e.discardAsync(keyToken{"k", h.Token()}, nil, time.Now())
		synctest.Wait()
		if s.value("k") != h.Token() || s.count("release") != 0 {
			t.Errorf("the key holds %q after %d releases", s.value("k"), s.count("release"))
		}
		release(t, h)
	})
}

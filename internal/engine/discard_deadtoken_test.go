package engine

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestTokenWithUnknownResultIsDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.after.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "take" {
				return &store.Fault{Unknown: true, Temporary: true, Err: errors.New("no reply")}
			}
			return nil
		})
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Unavailable {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if s.value("k") != "" || s.count("release") != 1 {
			t.Errorf("the dead token %q holds the key after %d releases", s.value("k"), s.count("release"))
		}
		h := hold(t, e, request(WaitForever))
		if h.Token() == "me:1" {
			t.Errorf("the dead token %q was used again", h.Token())
		}
		// The reply to the waiter's own take was lost, too. The waiter kept its token:
		// enqueue tells whether that holds the key.
		if want := []string{"take", "release", "take", "enqueue"}; !slices.Equal(s.transitions(), want) {
			t.Errorf("transitions %v, want %v", s.transitions(), want)
		}
		release(t, h)
	})
}

func TestLateGrantIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.after.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "take" {
				time.Sleep(validity)
			}
			return nil
		})
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Unavailable {
			t.Errorf("a lease without validity was handed out: %v", err)
		}
		synctest.Wait()
		if s.value("k") != "" {
			t.Error("the key is left")
		}
	})
}

// After a late grant the queue asks with a transition that raises the TTL: a resend of the
// take may have locked the key.
func TestLateGrantIsNotFollowedByTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		delaysOnce(s, "take", validity)
		h := hold(t, e, request(WaitForever))
		if s.count("take") != 1 || s.count("enqueue") == 0 {
			t.Errorf("transitions %v", s.transitions())
		}
		release(t, h)
	})
}

// A key from which a dead token was removed is asked for with a transition that raises
// its TTL: an earlier send of the take may have locked it.
func TestKeyWithDeadTokenIsAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", deadToken(t, e), time.Hour)
		h := hold(t, e, request(0))
		if want := []string{"take", "release", "take", "release", "enqueue"}; !slices.Equal(s.transitions(), want) {
			t.Errorf("transitions %v, want %v", s.transitions(), want)
		}
		release(t, h)
	})
}

func TestOwnDeadTokenIsNotContention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", deadToken(t, e), time.Hour)
		release(t, hold(t, e, request(0)))
		s.set("k", "others:999", time.Hour)
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy {
			t.Errorf("got %v", err)
		}
		s.set("k", "me", time.Hour) // a foreign value without a counter
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy {
			t.Errorf("got %v", err)
		}
	})
}

func TestHintOfDeadTokenReleasesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		s.hint("k", h.Token())
		synctest.Wait()
		if s.value("k") != h.Token() {
			t.Fatal("a hint released a live token")
		}
		release(t, h)
		s.set("k", h.Token(), time.Minute) // a delayed SET
		s.hint("k", h.Token())
		synctest.Wait()
		if s.value("k") != "" {
			t.Error("a dead token holds the key")
		}
	})
}

// A token that may be sent twice is released as long as a late send can take the key, and not while it is held.
func TestTokenWithUnknownResultIsLookedAfter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		begun := time.Now()
		s.after.set(func(string, storetest.AnyRequest) error {
			if time.Since(begun) < time.Second {
				return &store.Fault{Unknown: true, Temporary: true, Err: errors.New("no reply")}
			}
			return nil
		})
		h := hold(t, e, request(WaitForever))
		if n := s.count("enqueue"); n < 3 || e.later.count() != 1 {
			t.Errorf("%d enqueues, and %d tokens are looked after", n, e.later.count())
		}
		time.Sleep(1500 * time.Millisecond)
		if s.value("k") != h.Token() {
			t.Fatal("a live token was released")
		}
		release(t, h)
		s.set("k", h.Token(), time.Hour) // a delayed take
		time.Sleep(8 * time.Second)
		if s.value("k") != "" || e.later.count() != 0 {
			t.Errorf("the dead token %q holds the key, %d are looked after", s.value("k"), e.later.count())
		}
	})
}

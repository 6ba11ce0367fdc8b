package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestShortExtendKeepsCommandBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		for _, transition := range []string{"renew", "release"} {
			s.before.set(func(name string, r storetest.AnyRequest) error {
				if name == transition && r.Bound != bound {
					t.Errorf("%s is bounded by %v, want %v", name, r.Bound, bound)
				}
				return nil
			})
			if transition == "renew" {
				if loss, err := h.Extend(t.Context(), time.Millisecond); loss != NotLost || err != nil {
					t.Errorf("extend: %v, %v", loss, err)
				}
				continue
			}
			release(t, h)
		}
	})
}

func TestExtensionIsNotInherited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		if loss, err := h.Extend(t.Context(), time.Hour); loss != NotLost || err != nil {
			t.Fatalf("extend: %v, %v", loss, err)
		}
		waiting(t, e, request(WaitForever), func(next *Hold) {
			if next.Token() == h.Token() || time.Until(keyExpiry(s)) > request(0).TTL {
				t.Errorf("the next holder has token %q and %v to live", next.Token(), time.Until(keyExpiry(s)))
			}
		})
		release(t, h)
		synctest.Wait()
	})
}

func TestExtend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		r := request(0)
		r.Renew = false
		h := hold(t, e, r)
		if loss, err := h.Extend(t.Context(), time.Minute); loss != NotLost || err != nil {
			t.Fatalf("extend: %v, %v", loss, err)
		}
		time.Sleep(59 * time.Second)
		if h.Context().Err() != nil {
			t.Error("lost before the extended end")
		}
		release(t, h)
		if loss, _ := h.Extend(t.Context(), time.Minute); loss == NotLost {
			t.Error("extended after the release")
		}
		s.before.set(func(string, storetest.AnyRequest) error { return errDown })
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Unavailable {
			t.Errorf("got %v", err)
		}
	})
}

// An Extend in flight delays the release, as each renewal does.
func TestReleaseIsNotSentDuringExtend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		s.before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "renew" {
				time.Sleep(bound / 2)
			}
			return nil
		})
		go func() { _, _ = h.Extend(t.Context(), time.Minute) }()
		synctest.Wait()
		release(t, h)
		if want := []string{"take", "renew", "release"}; !slices.Equal(s.transitions(), want) {
			t.Errorf("transitions %v, want %v", s.transitions(), want)
		}
	})
}

package engine

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A caller lends its goroutine to the store only if it can still leave in time.
func TestInlineRequests(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		wait     time.Duration
		deadline time.Duration // of the context; 0 is none
		inline   bool
		fencing  bool
	}{
		{name: "a nowait caller", inline: true},
		{name: "a nowait caller with fencing", inline: true, fencing: true},
		{name: "a waiter without limit", wait: WaitForever, inline: true},
		{name: "a long wait", wait: store.InlineTime, inline: true},
		{name: "a short wait", wait: store.InlineTime - 1},
		{name: "a far deadline", deadline: store.InlineTime, inline: true},
		{name: "a near deadline", deadline: store.InlineTime - 1},
	} {
		row(t, test.name, func(t *testing.T) {
			e, s, _ := newEngine()
			seen := make(map[string]bool)
			s.before.set(func(transition string, r storetest.AnyRequest) error {
				seen[transition] = r.Inline
				return nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
			defer cancel()
			if test.deadline == 0 {
				ctx = t.Context()
			}
			r := request(test.wait)
			r.Fencing = test.fencing
			h, err := e.Acquire(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			if loss, err := h.Release(ctx); loss != NotLost || err != nil {
				t.Errorf("release: %v, %v", loss, err)
			}
			question := "take"
			if test.fencing {
				question = "enqueue"
			}
			if got := seen[question]; got != test.inline {
				t.Errorf("the question: inline %v", got)
			}
			near := test.deadline > 0 && !test.inline
			if got := seen["release"]; got == near {
				t.Errorf("the release: inline %v", got)
			}
		})
	}
}

// A waiter that finds another's token by its own inline request gets one Waiting event.
func TestInlineWaiterGetsOneWaitingEvent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fencing bool
		delay   time.Duration
	}{"after a take": {}, "after a slow take": {delay: time.Millisecond}, "after an enqueue": {fencing: true}} {
		row(t, name, func(t *testing.T) {
			e, s, events := newEngine()
			if test.delay > 0 {
				s.before.set(delays(test.delay))
			}
			s.set("k", "another", time.Minute)
			r := request(WaitForever)
			r.Fencing = test.fencing
			release(t, hold(t, e, r))
			var kinds []Kind
			for _, event := range events.all() {
				kinds = append(kinds, event.Kind)
			}
			if !slices.Equal(kinds, []Kind{Waiting, Acquired, Released}) {
				t.Errorf("events %v", kinds)
			}
			if got := events.of(Acquired)[0]; !got.Queued || got.Grant != Awaited || got.Waited < time.Minute-time.Second {
				t.Errorf("acquired: %+v", got)
			}
		})
	}
}

// A panickingStore panics on the goroutine of its caller after it has answered a take, as
// a hook of a client may.
type panickingStore struct{ *fakeStore }

func (s panickingStore) Take(r store.TakeRequest, done func(store.Answer, error)) {
	s.fakeStore.Take(r, done)
	if r.Inline {
		panic("hook")
	}
}

// If the store panics on the goroutine of a caller, the caller gives back what it was
// granted.
func TestPanicOfInlineRequestLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, holder := range map[string]string{"granted": "", "refused": "other:1"} {
		row(t, name, func(t *testing.T) {
			e, s, _ := newEngine()
			e.store = panickingStore{s}
			if holder != "" {
				s.set("k", holder, time.Hour)
			}
			if caught := panicOf(func() { _, _ = e.Acquire(t.Context(), request(0)) }); caught != "hook" {
				t.Errorf("the caller got the panic %v", caught)
			}
			synctest.Wait()
			if s.value("k") != holder || e.queueCount() != 0 {
				t.Errorf("left: key %q, %d queues", s.value("k"), e.queueCount())
			}
		})
	}
}

func panicOf(f func()) (caught any) {
	defer func() { caught = recover() }()
	f()
	return nil
}

// The reply with the holder costs more, and only a caller that may not wait needs it.
func TestOnlyNowaitCallerAsksForTheHolder(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]bool{0: true, WaitForever: false} {
		synctest.Test(t, func(t *testing.T) {
			e, s, _ := newEngine()
			s.before.set(func(transition string, r storetest.AnyRequest) error {
				if transition == "take" && r.WithHolder != want {
					t.Errorf("wait %v: a take with the holder: %v", wait, r.WithHolder)
				}
				return nil
			})
			release(t, hold(t, e, request(wait)))
		})
	}
}

// A caller that may not wait joins the take of a waiter, which has not asked for the holder,
// and the waiter leaves. The key has a dead token of this process, which is no contention.
func TestNowaitCallerIsNotRefusedByReplyWithoutHolder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", deadToken(t, e), time.Hour)
		delaysOnce(s, "take", storeDelay)
		cancel := leaving(t, e, request(WaitForever))
		got := acquiring(t, e, request(0))
		cancel()
		if err := <-got; err != nil {
			t.Errorf("refused: %v", err)
		}
	})
}

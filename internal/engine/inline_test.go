package engine

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// inlineRecorder notes which transitions could run on the goroutine of their caller.
type inlineRecorder struct {
	store.Store
	mu   sync.Mutex
	seen map[string]bool
}

func (s *inlineRecorder) note(transition string, inline bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[transition] = inline
}

func (s *inlineRecorder) Take(r store.TakeRequest, done func(store.Answer, error)) {
	s.note("take", r.Inline)
	s.Store.Take(r, done)
}

func (s *inlineRecorder) Enqueue(r store.EnqueueRequest, done func(store.Answer, error)) {
	s.note("enqueue", r.Inline)
	s.Store.Enqueue(r, done)
}

func (s *inlineRecorder) Release(r store.ReleaseRequest, done func(store.ReleaseResult, error)) {
	s.note("release", r.Inline)
	s.Store.Release(r, done)
}

// A caller lends its goroutine to the store only if it can still leave in time.
func TestInlineRequests(t *testing.T) {
	t.Parallel()
	within := func(d time.Duration) func(*testing.T) context.Context {
		return func(t *testing.T) context.Context {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
	}
	tests := []struct {
		name    string
		wait    time.Duration
		ctx     func(*testing.T) context.Context
		inline  bool
		fencing bool
	}{
		{name: "a nowait caller", inline: true},
		{name: "a nowait caller with fencing", inline: true, fencing: true},
		{name: "a waiter without limit", wait: WaitForever, inline: true},
		{name: "a long wait", wait: store.InlineTime, inline: true},
		{name: "a short wait", wait: store.InlineTime - 1},
		{name: "a far deadline", ctx: within(store.InlineTime), inline: true},
		{name: "a near deadline", ctx: within(store.InlineTime - 1)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, s, _ := newEngine()
				noted := &inlineRecorder{Store: s, seen: make(map[string]bool)}
				e.store = noted
				ctx := t.Context()
				if test.ctx != nil {
					ctx = test.ctx(t)
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
				if got := noted.seen[question]; got != test.inline {
					t.Errorf("the question: inline %v", got)
				}
				near := test.ctx != nil && !test.inline
				if got := noted.seen["release"]; got == near {
					t.Errorf("the release: inline %v", got)
				}
			})
		})
	}
}

// Callers that arrive during an inline request share its reply.
func TestCallersDuringInlineRequestShareReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.inline = true
		s.before.set(func(string, storetest.AnyRequest) error { time.Sleep(bound / 2); return nil })
		var group sync.WaitGroup
		var won, busy int
		var mu sync.Mutex
		for range 9 {
			group.Go(func() {
				_, err := e.Acquire(t.Context(), request(0))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else if reasonOf(t, err) == Busy {
					busy++
				}
			})
		}
		group.Wait()
		if won != 1 || busy != 8 {
			t.Errorf("%d won, %d were busy", won, busy)
		}
		_ = e.Close(canceledContext())
	})
}

// A waiter that finds another's token by its own inline request gets one Waiting event.
func TestInlineWaiterGetsOneWaitingEvent(t *testing.T) {
	t.Parallel()
	t.Run("after a take", func(t *testing.T) { checkWaitingOnce(t, false, 0) })
	t.Run("after a slow take", func(t *testing.T) { checkWaitingOnce(t, false, time.Millisecond) })
	t.Run("after an enqueue", func(t *testing.T) { checkWaitingOnce(t, true, 0) })
}

func checkWaitingOnce(t *testing.T, fencing bool, delay time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		if delay > 0 {
			s.before.set(func(string, storetest.AnyRequest) error { time.Sleep(delay); return nil })
		}
		s.set("k", "another", time.Minute)
		r := request(WaitForever)
		r.Fencing = fencing
		h, err := e.Acquire(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		release(t, h)
		var kinds []Kind
		for _, event := range events.all() {
			kinds = append(kinds, event.Kind)
		}
		if len(kinds) != 3 || kinds[0] != Waiting || kinds[1] != Acquired || kinds[2] != Released {
			t.Errorf("events %v", kinds)
		}
		if got := events.of(Acquired)[0]; !got.Queued || got.Handover != Awaited || got.Waited < time.Minute-time.Second {
			t.Errorf("acquired: %+v", got)
		}
	})
}

// A queue is reused for another key. Holds of its old key do not touch it.
func TestOldHoldDoesNotTouchReusedQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		old := hold(t, e, request(0))
		token, until, ctx := old.Token(), old.ValidUntil(), old.Context()
		release(t, old)
		if n := e.queueCount(); n != 0 {
			t.Fatalf("%d queues", n)
		}
		r := request(0)
		for e.shardOf(r.Key) != e.shardOf("k") || r.Key == "k" {
			r.Key += "k"
		}
		time.Sleep(time.Second)
		now := hold(t, e, r)
		if now.lease.queue != old.lease.queue {
			t.Fatal("the queue is not reused")
		}
		if old.Token() != token || !old.ValidUntil().Equal(until) || ctx.Err() == nil || old.Alive() {
			t.Errorf("the old hold: %q until %v, %v, alive %v", old.Token(), old.ValidUntil(), ctx.Err(), old.Alive())
		}
		if loss, err := old.Extend(t.Context(), time.Hour); loss != Taken || err != nil {
			t.Errorf("extend: %v, %v", loss, err)
		}
		release(t, old) // a second time
		if !now.Alive() || now.Context().Err() != nil || s.value(r.Key) != now.Token() {
			t.Error("the new one is gone")
		}
		release(t, now)
	})
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
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
		})
	}
}

func panicOf(f func()) (caught any) {
	defer func() { caught = recover() }()
	f()
	return nil
}

// A wait that ends before the subscription is ready is refused because of contention.
func TestWaitDuringSubscribeTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.connecting = 200 * time.Millisecond
		s.set("k", "foreign", time.Hour)
		_, err := e.Acquire(t.Context(), request(100*time.Millisecond))
		if reasonOf(t, err) != TimedOut {
			t.Errorf("%v", err)
		}
		_ = e.Close(context.Background())
	})
}

// A caller for which there is no room takes no place in the store's queue.
func TestCallerWithoutRoomTakesNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
			if want := []string{"take"}; !slices.Equal(s.transitions(), want) {
				t.Errorf("transitions %v, want %v", s.transitions(), want)
			}
		}
	})
}

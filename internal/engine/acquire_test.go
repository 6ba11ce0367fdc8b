package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestWaitersAreServedInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, events := newEngine()
		first := hold(t, e, request(0))
		const n = 200
		var order []int
		for i := range n {
			waiting(t, e, request(WaitForever), func(*Hold) { order = append(order, i) })
		}
		if s.listening != 1 {
			t.Errorf("%d subscriptions", s.listening)
		}
		release(t, first)
		synctest.Wait()
		if !slices.IsSorted(order) || len(order) != n {
			t.Errorf("%d served, in the order %v", len(order), order)
		}
		for _, acquired := range events.of(Acquired)[1:] {
			if acquired.Grant != Passed {
				t.Errorf("event %+v", acquired)
			}
		}
		if got := len(events.of(Waiting)); got != n {
			t.Errorf("%d waiting events, want %d", got, n)
		}
		// Once the budget is spent the store reports that no other process waits. From
		// then on the lease is passed without the store.
		s.checkTransitions(t, "take", "release", "release")
		if e.queueCount() != 0 || s.value("k") != "" {
			t.Errorf("%d queues and key %q are left", e.queueCount(), s.value("k"))
		}
	})
}

// Callers that may not wait share the reply to one request, also if the first of them lends its
// goroutine.
func TestOneOfNineNowaitCallersWins(t *testing.T) {
	t.Parallel()
	for name, inline := range map[string]bool{"on a goroutine of the store": false, "on that of the first": true} {
		row(t, name, func(t *testing.T) {
			e, s, _ := newEngine()
			s.inline = inline
			s.before.set(delays(bound / 2))
			var group sync.WaitGroup
			var won, busy atomic.Int64
			for range 9 {
				group.Go(func() {
					if _, err := e.Acquire(t.Context(), request(0)); err == nil {
						won.Add(1)
					} else if reasonOf(t, err) == Busy {
						busy.Add(1)
					}
				})
			}
			group.Wait()
			if won.Load() != 1 || busy.Load() != 8 || s.count("take") != 1 {
				t.Errorf("%d won, %d busy, %d takes; want 1, 8, 1", won.Load(), busy.Load(), s.count("take"))
			}
			_ = e.Close(canceledContext())
		})
	}
}

func TestOldRefusalDoesNotRefuseNewCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", "foreign", time.Hour)
		ctx := t.Context()
		r := request(0)
		w := e.newWaiter(ctx, &r)
		shard := e.shardOf("k")
		shard.mu.Lock()
		q := e.rootOf(shard, "k")
		q.openEpisode(true)
		q.contended, q.lastFault = true, nil
		shard.mu.Unlock() // refused, and not idle yet
		s.set("k", "", 0)
		if refusal := e.enter(ctx, w, ""); refusal != nil {
			t.Fatalf("refused by what was true before: %+v", refusal)
		}
		shard.mu.Lock()
		q.ask()
		shard.mu.Unlock()
		if refusal := e.await(ctx, w, time.Now()); refusal != nil {
			t.Errorf("refused: %+v", refusal)
		}
		release(t, w.hold)
	})
}

func TestLeavingCallerIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, events := newEngine()
		first := hold(t, e, request(0))
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := e.Acquire(ctx, request(WaitForever))
			left <- err
		}()
		synctest.Wait()
		var served []string
		waiting(t, e, request(WaitForever), func(*Hold) { served = append(served, "second") })
		begun := time.Now()
		cancel()
		err := <-left
		if refusal := err.(*Refusal); refusal.Reason != TimedOut || refusal.Ended != context.Canceled || time.Since(begun) != 0 { //nolint:errorlint,forcetypeassert // exact by contract
			t.Errorf("leaving caller: %+v after %v", refusal, time.Since(begun))
		}
		release(t, first)
		synctest.Wait()
		if len(served) != 1 || s.value("k") != "" || len(events.of(Acquired)) != 2 {
			t.Errorf("served %v, key %q", served, s.value("k"))
		}
	})
}

// A wait ends on time because of contention, and takes the time of a slow first request into account.
func TestWaitEndsOnTime(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wait    time.Duration
		arrange func(s *fakeStore)
	}{
		"in the queue":               {2 * time.Second, func(*fakeStore) {}},
		"after a slow first request": {2 * time.Second, func(s *fakeStore) { s.inline = true; s.before.set(delays(bound)) }},
		"while it subscribes":        {100 * time.Millisecond, func(s *fakeStore) { s.connecting = 200 * time.Millisecond }},
	} {
		row(t, name, func(t *testing.T) {
			e, s, _ := newEngine()
			s.set("k", "foreign", time.Hour)
			test.arrange(s)
			begun := time.Now()
			_, err := e.Acquire(t.Context(), request(test.wait))
			if reasonOf(t, err) != TimedOut || time.Since(begun) != test.wait {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
			sleep(time.Second) // commands in flight end
			if e.queueCount() != 0 || s.value("k") != "foreign" {
				t.Errorf("%d queues, key %q", e.queueCount(), s.value("k"))
			}
		})
	}
}

// The refusal of a caller whose context has ended has the error and the cause of the
// context.
func TestRefusalHasCauseOfContext(t *testing.T) {
	t.Parallel()
	e, s, _ := newEngine()
	s.set("k", "foreign", time.Hour)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDown)
	_, err := e.Acquire(ctx, request(WaitForever))
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Reason != TimedOut || refusal.Ended != context.Canceled || refusal.Cause != errDown { //nolint:errorlint // the very errors
		t.Errorf("%+v", refusal)
	}
}

func TestGrantAfterCallerLeftIsReleased(t *testing.T) {
	t.Parallel()
	for _, transition := range []string{"take", "enqueue"} {
		row(t, transition, func(t *testing.T) {
			e, s, events := newEngine()
			if transition == "enqueue" {
				s.set("k", "foreign", time.Hour) // the take is refused, an enqueue wins
			}
			s.after.set(func(name string, _ storetest.AnyRequest) error {
				if name == "take" && transition == "enqueue" {
					s.set("k", "", 0)
				}
				if name == transition {
					time.Sleep(100 * time.Millisecond) // the reply is slow
				}
				return nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			begun := time.Now()
			_, err := e.Acquire(ctx, request(WaitForever))
			if reasonOf(t, err) == 0 || time.Since(begun) != 50*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
			if s.value("k") == "" {
				t.Fatal("the command did not win: the test shows nothing")
			}
			time.Sleep(time.Second)
			if s.value("k") != "" || e.queueCount() != 0 || len(events.of(Acquired)) != 0 {
				t.Errorf("key %q, %d queues", s.value("k"), e.queueCount())
			}
		})
	}
}

func TestGrantToLeavingCallerIsPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, events := newEngine()
		ctx, cancel := context.WithCancel(t.Context())
		r := request(WaitForever)
		w := e.newWaiter(ctx, &r)
		if refusal := e.enter(ctx, w, ""); refusal != nil {
			t.Fatal(refusal)
		}
		synctest.Wait() // granted, but the caller has not seen it
		served := false
		waiting(t, e, request(WaitForever), func(*Hold) { served = true })
		cancel()
		if refusal := e.await(ctx, w, time.Now()); refusal == nil || !errors.Is(refusal.Ended, context.Canceled) {
			t.Errorf("leaving caller got %v", refusal)
		}
		synctest.Wait()
		if !served || s.count("take") != 1 || s.value("k") != "" {
			t.Errorf("served %v, %d takes, key %q", served, s.count("take"), s.value("k"))
		}
		if got := len(events.of(Released)); got != 1 {
			t.Errorf("%d released events, want the one of the holder", got)
		}
	})
}

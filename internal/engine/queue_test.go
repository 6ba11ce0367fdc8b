package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// waiting starts a waiter on its own goroutine and returns once the waiter is in the
// queue. run is called while the waiter holds the lease.
func waiting(t *testing.T, e *Engine, r Request, run func(*Hold)) {
	t.Helper()
	go func() {
		h, err := e.Acquire(t.Context(), r)
		if err != nil {
			t.Errorf("waiter: %v", err)
			return
		}
		run(h)
		release(t, h)
	}()
	synctest.Wait()
}

func TestWaitersAreServedInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		first := hold(t, e, request(0))
		const n = 200
		var order []int
		for i := range n {
			waiting(t, e, request(WaitForever), func(*Hold) { order = append(order, i) })
		}
		release(t, first)
		synctest.Wait()
		if !slices.IsSorted(order) || len(order) != n {
			t.Errorf("%d served, in the order %v", len(order), order)
		}
		if got := len(events.of(Waiting)); got != n {
			t.Errorf("%d waiting events, want %d", got, n)
		}
		// Once the budget is spent the store reports that no other process waits. From
		// then on the lease is passed without the store.
		if want := []string{"take", "release", "release"}; !slices.Equal(s.transitions(), want) {
			t.Errorf("transitions %v, want %v", s.transitions(), want)
		}
		if e.queueCount() != 0 || s.value("k") != "" {
			t.Errorf("%d queues and key %q are left", e.queueCount(), s.value("k"))
		}
	})
}

func TestPassesEndWithTimeBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		first := hold(t, e, request(0))
		for range 3 {
			waiting(t, e, request(WaitForever), func(*Hold) { time.Sleep(30 * time.Millisecond) })
		}
		release(t, first) // passes at 0 and 30 ms, goes to the store at 60 ms
		time.Sleep(time.Second)
		synctest.Wait()
		var how []Handover
		for _, acquired := range events.of(Acquired) {
			how = append(how, acquired.Handover)
		}
		if want := []Handover{Free, Passed, Passed, Passed}; !slices.Equal(how, want) {
			t.Errorf("handovers %v, want %v", how, want)
		}
		if want := []string{"take", "release", "release"}; !slices.Equal(s.transitions(), want) {
			t.Errorf("transitions %v, want %v", s.transitions(), want)
		}
	})
}

func TestNewCallersDoNotOvertakeWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _, _ := newEngine()
		first := hold(t, e, request(0))
		done := make(chan struct{})
		waiting(t, e, request(WaitForever), func(*Hold) {
			if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy {
				t.Errorf("new caller beside a holder: %v", err)
			}
			close(done)
		})
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy {
			t.Errorf("new caller beside a queue: %v", err)
		}
		release(t, first)
		<-done
	})
}

func TestOneOfNineNowaitCallersWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.before.set(func(string, storetest.AnyRequest) error { time.Sleep(time.Millisecond); return nil })
		var mu sync.Mutex
		won, busy := 0, 0
		for range 9 {
			go func() {
				_, err := e.Acquire(t.Context(), request(0))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else if reasonOf(t, err) == Busy {
					busy++
				}
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if won != 1 || busy != 8 || s.count("take") != 1 {
			t.Errorf("%d won, %d busy, %d takes; want 1, 8, 1", won, busy, s.count("take"))
		}
		e.loseAll()
	})
}

func TestOldRefusalDoesNotRefuseNewCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		if refusal := e.enter(ctx, w); refusal != nil {
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

func TestKeyDuringReleaseIsNotBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		h := hold(t, e, request(0))
		s.before.set(func(string, storetest.AnyRequest) error { time.Sleep(10 * time.Millisecond); return nil })
		go release(t, h)
		synctest.Wait() // the release is in flight
		release(t, hold(t, e, request(0)))
		if got := events.of(Refused); len(got) != 0 {
			t.Errorf("refused: %v", got)
		}
	})
}

func TestLeavingCallerIsRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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

func TestWaitEndsOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", "foreign", time.Hour)
		begun := time.Now()
		_, err := e.Acquire(t.Context(), request(2*time.Second))
		if reasonOf(t, err) != TimedOut || time.Since(begun) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		synctest.Wait()
		if e.queueCount() != 0 || s.value("k") != "foreign" {
			t.Errorf("%d queues, key %q", e.queueCount(), s.value("k"))
		}
	})
}

// The time of a slow first request belongs to the wait.
func TestWaitEndsOnTimeAfterSlowRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", "foreign", time.Hour)
		s.inline = true
		s.before.set(func(string, storetest.AnyRequest) error { time.Sleep(bound); return nil })
		begun := time.Now()
		_, err := e.Acquire(t.Context(), request(2*time.Second))
		if reasonOf(t, err) != TimedOut || time.Since(begun) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
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

//faults:row 2
func TestGrantAfterCallerLeftIsReleased(t *testing.T) {
	t.Parallel()
	for _, transition := range []string{"take", "enqueue"} {
		t.Run(transition, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
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
		})
	}
}

func TestGrantToLeavingCallerIsPassedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		ctx, cancel := context.WithCancel(t.Context())
		r := request(WaitForever)
		w := e.newWaiter(ctx, &r)
		if refusal := e.enter(ctx, w); refusal != nil {
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

func TestRequestOutlivesFirstWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.before.set(func(name string, _ storetest.AnyRequest) error {
			if name == "take" {
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		go func() { _, _ = e.Acquire(ctx, request(WaitForever)) }()
		synctest.Wait()
		var token string
		waiting(t, e, request(WaitForever), func(h *Hold) { token = h.Token() })
		time.Sleep(time.Second)
		synctest.Wait()
		if token != "me:1" || s.count("take") != 1 {
			t.Errorf("token %q after %d takes", token, s.count("take"))
		}
	})
}

func TestKeyOfForeignHolderIsPolled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", "foreign", 10*time.Second)
		begun := time.Now()
		h := hold(t, e, request(WaitForever))
		if late := time.Since(begun) - 10*time.Second; late < 0 || late > 10*time.Millisecond {
			t.Errorf("served %v after the holder's end", late)
		}
		if looks := s.count("enqueue"); looks < 30 || looks > 45 {
			t.Errorf("%d requests in 10 s, want some at 50 and 100 ms and the others at 250", looks)
		}
		release(t, h)
	})
}

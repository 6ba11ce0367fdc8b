package engine

import (
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

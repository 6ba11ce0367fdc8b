package core_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/gauges"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Whatever callers do, and whatever happens to their leases, each Acquired has one Released,
// and each Waiting is followed by one event that ends the wait. So gauges return to zero.
func TestGaugesBalance(t *testing.T) {
	t.Parallel()
	const callers, calls = 8, 40
	rdb := newEmbedded(t)
	counts := [2]gauges.Gauges{}
	var lockers [2]*core.Locker // two processes, which hand the locks over
	for i := range lockers {
		locks, err := core.New(rdb, core.WithTTL(300*time.Millisecond), core.WithCommandTimeout(75*time.Millisecond),
			core.WithWait(time.Second), core.WithObserver(counts[i].Observe))
		noError(t, err)
		lockers[i] = locks
	}
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			for range calls {
				callAtRandom(t, lockers[i%len(lockers)])
			}
		})
	}
	group.Go(func() { // leases are lost
		for range 10 {
			time.Sleep(30 * time.Millisecond)
			rdb.Del(context.Background(), "reqlock:"+strconv.Itoa(rand.IntN(3)))
		}
	})
	group.Wait()
	tries := 0
	suite.Eventually(t, "a copy gets its answer", func() bool { // on a busy machine, none may have got one until now
		tries++
		key := "copied " + strconv.Itoa(tries) // an attempt that loses its lease before the commit leaves no answer
		for range 2 {
			if a, err := lockers[0].Begin(t.Context(), key, nil); err == nil {
				_ = a.Commit(t.Context(), []byte("answer"))
			}
		}
		return counts[0].Count(core.Replayed) > 0
	})
	seen := map[core.EventKind]int{}
	for i, locks := range lockers {
		noError(t, locks.Close(context.Background()))
		suite.Eventually(t, "the gauges balance", func() bool { return counts[i].Unbalanced() == "" })
		for kind := core.Acquired; kind <= core.Committed; kind++ {
			seen[kind] += counts[i].Count(kind)
		}
	}
	for _, kind := range []core.EventKind{core.Acquired, core.Waiting, core.Refused, core.Released, core.Lost, core.Replayed, core.Committed} {
		if seen[kind] == 0 {
			t.Errorf("there was no event %v: %v", kind, seen)
		}
	}
}

// panicOfTest is the value of panics.
const panicOfTest = "a panic of the test"

// callAtRandom makes a call of a random kind, for one of a few keys. Its errors do not count.
func callAtRandom(t *testing.T, locks *core.Locker) {
	t.Helper()
	defer func() {
		if got := recover(); got != nil && got != panicOfTest {
			panic(got)
		}
	}()
	key := strconv.Itoa(rand.IntN(3))
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond+rand.N(20*time.Millisecond))
	defer cancel()
	briefly := func(context.Context) error { return sleepFor(rand.N(time.Millisecond)) }
	switch rand.IntN(9) {
	case 0: // the caller cancels
		_ = locks.Do(ctx, key, briefly)
	case 1: // no wait
		_ = locks.With(core.WithWait(0)).Do(context.Background(), key, briefly)
	case 2: // a panic
		_ = locks.Do(context.Background(), key, func(context.Context) error { panic(panicOfTest) })
	case 3: // several keys
		_ = locks.DoAll(ctx, []string{"0", "1", "2"}, briefly)
	case 4: // the lease ends under its holder
		_ = locks.With(core.WithMaxHold(time.Millisecond), core.WithName("short")).Do(context.Background(), key, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	case 5: // a hold that may lose its key
		_ = locks.With(core.WithName("long")).Do(context.Background(), key, func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-time.After(rand.N(50 * time.Millisecond)):
			}
			return nil
		})
	case 6: // a key that cannot be read, or one of a few names
		_, release, _ := core.Enter(ctx, locks, form{"a": key}, core.Named("account", field("a")), field([]string{"a", "b"}[rand.IntN(2)]))
		release()
	default: // an attempt, and its copies
		a, err := locks.Begin(ctx, strconv.Itoa(rand.IntN(12)), nil)
		if err != nil {
			return
		}
		switch rand.IntN(4) {
		case 0:
			_ = a.Abort(ctx)
		case 1:
			_ = a.Seal(ctx)
		default:
			_ = a.Commit(ctx, []byte("answer"))
		}
	}
}

// sleepFor sleeps, as work does.
func sleepFor(d time.Duration) error {
	time.Sleep(d)
	return nil
}

package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// An overlap is how long the next holder acted beside a holder whose lease an operator has ended.
type overlap struct {
	told time.Duration // until the holder's context ended
	next time.Duration // until the next holder got the lock
}

// endLive ends the lease of a live holder by act while another process waits, and measures it. The
// operator acts so long after the last renewal or take.
func endLive(t *testing.T, key string, after time.Duration, one, other *core.Locker, i *inspect.Inspector, act func(context.Context, inspect.Lock) error) overlap {
	t.Helper()
	lease := must(one.Lock(t.Context(), key))(t)
	next := wait(t, i, other, key)
	seen := must(i.Lock(t.Context(), key))(t)
	pause := time.NewTimer(after)
	defer pause.Stop()
	<-pause.C
	told := make(chan time.Time, 1)
	go func() {
		<-lease.Context().Done()
		told <- time.Now()
	}()
	begun := time.Now()
	if err := act(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
	got := <-next
	entered := time.Now()
	o := overlap{(<-told).Sub(begun), entered.Sub(begun)}
	if err := lease.Release(t.Context()); !errors.Is(err, core.ErrLost) {
		t.Errorf("the former holder releases: %v", err)
	}
	if err := got.Release(t.Context()); err != nil {
		t.Error(err)
	}
	return o
}

// After a revoke, no two holders act at once.
func TestRevokeOfALiveHolderHasNoOverlap(t *testing.T) {
	t.Parallel()
	const ttl = 900 * time.Millisecond
	rdb := start(t).Client(t)
	i := newInspector(t, rdb)
	runs, workers := suite.Size(12, 200), 4
	var longest, shortest time.Duration
	shortest = time.Hour
	results := make(chan overlap, runs)
	t.Run("runs", func(t *testing.T) {
		for worker := range workers {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				one, other := newLocker(t, rdb, core.WithTTL(ttl)), newLocker(t, rdb, core.WithTTL(ttl))
				for n := range runs / workers {
					key := fmt.Sprint(worker, "-", n)
					results <- endLive(t, key, ttl/3*time.Duration(n)/time.Duration(runs/workers), one, other, i, i.Revoke)
				}
			})
		}
	})
	close(results)
	count := 0
	for o := range results {
		count++
		longest, shortest = max(longest, o.told), min(shortest, o.next-o.told)
		if o.next < o.told {
			t.Errorf("the next holder entered %v before the former one was told", o.told-o.next)
		}
	}
	t.Logf("%d runs, TTL %v: the holder was told after at most %v, the next one entered at least %v later", count, ttl, longest, shortest)
}

// FreeNow overlaps with a live holder, for up to a third of the TTL.
func TestFreeNowOfALiveHolderOverlapsUntilItsRenewal(t *testing.T) {
	t.Parallel()
	const ttl = 900 * time.Millisecond
	rdb := start(t).Client(t)
	i := newInspector(t, rdb)
	one, other := newLocker(t, rdb, core.WithTTL(ttl)), newLocker(t, rdb, core.WithTTL(ttl))
	var longest, slowest time.Duration
	runs := suite.Size(6, 50)
	for n := range runs {
		o := endLive(t, fmt.Sprint("k", n), ttl/3*time.Duration(n)/time.Duration(runs), one, other, i, i.FreeNow)
		longest, slowest = max(longest, o.told-o.next), max(slowest, o.next)
	}
	t.Logf("%d runs, TTL %v: the next holder entered after at most %v, and acted beside the former one for at most %v", runs, ttl, slowest, longest)
	if longest <= 0 {
		t.Error("there was no overlap: mend the comment of FreeNow")
	}
	if longest > ttl {
		t.Errorf("the overlap was %v", longest)
	}
}

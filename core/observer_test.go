package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/gauges"
)

// observedTTL is the TTL of the leases in this file.
const observedTTL = 2 * time.Second

// entrances are the ways to take a lock. Each holds the key k for long enough that all events of a
// lease come.
var entrances = map[string]func(ctx context.Context, locks *core.Locker) error{
	"Lock": func(ctx context.Context, locks *core.Locker) error {
		lease, err := locks.Lock(ctx, "k")
		if err != nil {
			return err
		}
		time.Sleep(4 * observedTTL)
		return lease.Release(ctx)
	},
	"Do": func(ctx context.Context, locks *core.Locker) error {
		return locks.Do(ctx, "k", holdLong)
	},
	"nested Do": func(ctx context.Context, locks *core.Locker) error {
		return locks.Do(ctx, "k", func(ctx context.Context) error { return locks.Do(ctx, "k", holdLong) })
	},
	"DoAll": func(ctx context.Context, locks *core.Locker) error {
		return locks.DoAll(ctx, []string{"k", "j"}, holdLong)
	},
	"LockAll": func(ctx context.Context, locks *core.Locker) error {
		leases, err := locks.LockAll(ctx, []string{"k", "j"})
		if err != nil {
			return err
		}
		time.Sleep(4 * observedTTL)
		return leases.Release(ctx)
	},
	"Enter": func(ctx context.Context, locks *core.Locker) error {
		_, done, err := core.Enter(ctx, locks, form{"a": "k", "b": "j"}, core.All(field("a"), field("b")))
		defer done()
		time.Sleep(4 * observedTTL)
		return err
	},
	"Commit": func(ctx context.Context, locks *core.Locker) error {
		a, err := locks.Begin(ctx, "k", nil)
		if _, done := a.Replay(); done || err != nil {
			return err
		}
		time.Sleep(4 * observedTTL)
		return a.Commit(ctx, []byte("answer"))
	},
	"Unknown": func(ctx context.Context, locks *core.Locker) error {
		a, err := locks.With(core.WithRerunUnknown(true)).Begin(ctx, "k", nil)
		if err != nil {
			return err
		}
		time.Sleep(4 * observedTTL)
		return a.Unknown(ctx, nil)
	},
	"a lease that expires": func(ctx context.Context, locks *core.Locker) error {
		lease, err := locks.With(core.WithRenewal(false)).Lock(ctx, "k")
		if err != nil {
			return err
		}
		<-lease.Context().Done()
		if err := lease.Release(ctx); !errors.Is(err, core.ErrLost) {
			return fmt.Errorf("release: %w", err)
		}
		return nil
	},
	"a lease with a limit": func(ctx context.Context, locks *core.Locker) error {
		err := locks.With(core.WithMaxHold(observedTTL)).Do(ctx, "k", func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, core.ErrMaxHold) {
			return fmt.Errorf("release: %w", err)
		}
		return nil
	},
}

// holdLong holds a lock for four TTLs.
func holdLong(context.Context) error {
	time.Sleep(4 * observedTTL)
	return nil
}

// An observer that panics, or that ends its goroutine as t.Fatal does, leaves no lock. The panic is
// reported once, and the other observers receive all events.
func TestObserverThatPanicsLeavesNoLock(t *testing.T) {
	t.Parallel()
	ways := map[string]func(){"panics": func() { panic("a bug of the observer") }, "ends its goroutine": runtime.Goexit}
	kinds := []core.EventKind{
		core.Acquired, core.Waiting, core.Released, core.Renewed, core.Lost, core.HeldLong, core.Replayed, core.Committed, core.OutcomeUnknown,
	}
	const second = 100 // added to a kind: the first event of the kind is fine
	kinds = append(kinds, second+core.Acquired)
	came := make(map[core.EventKind]bool)
	for name, enter := range entrances {
		var sent map[core.EventKind]int
		synctest.Test(t, func(t *testing.T) { sent = testBrokenObserver(t, core.Acquired, math.MaxInt, nil, enter, true) })
		for _, kind := range kinds {
			kind, fine := kind%second, int(kind/second)
			if sent[kind] <= fine {
				continue // this way to take a lock sends no such event
			}
			came[kind] = true
			for way, end := range ways {
				t.Run(fmt.Sprintf("%s/%s at %v %d", name, way, kind, fine+1), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { testBrokenObserver(t, kind, fine, end, enter, way == "panics") })
				})
			}
		}
	}
	for _, kind := range kinds {
		if !came[kind%second] {
			t.Errorf("no way to take a lock sends the event %v", kind%second)
		}
	}
}

// testBrokenObserver takes a lock twice, the second time by a caller that waits, while an observer
// is broken at one kind of event, except for the first few events. It returns the number of events by kind.
func testBrokenObserver(
	t *testing.T, kind core.EventKind, fine int, end func(), enter func(context.Context, *core.Locker) error, wantNoError bool,
) (sent map[core.EventKind]int) {
	t.Helper()
	events, counts := &recorder{}, &gauges.Gauges{}
	var received atomic.Int32
	var over atomic.Bool
	locks := locktest.New(t, core.WithTTL(observedTTL), core.WithWait(time.Minute),
		core.WithObserver(func(e core.Event) {
			if e.Kind == kind && !over.Load() {
				if int(received.Add(1)) > fine {
					end()
				}
			}
		}), core.WithObserver(events.record), core.WithObserver(counts.Observe))
	var requests sync.WaitGroup
	for range 2 {
		requests.Go(func() {
			returned := false
			defer func() {
				if caught := recover(); caught != nil || wantNoError && !returned {
					t.Errorf("the request panicked or ended: %v", caught)
				}
			}()
			if err := enter(t.Context(), locks.Locker); err != nil {
				t.Error(err)
			}
			returned = true
		})
		time.Sleep(time.Second)
	}
	requests.Wait()
	synctest.Wait()
	over.Store(true)
	if got := len(events.of(kind)); got != int(received.Load()) {
		t.Errorf("the broken observer received %d events, and the other one %d", received.Load(), got)
	}
	warned := events.of(core.Warned)
	if unbalanced := counts.Unbalanced(); unbalanced != "" {
		t.Error(unbalanced)
	}
	other := locks.Process()
	for _, key := range []string{"k", "j", "i:k"} {
		lease, err := other.TryLock(t.Context(), key)
		if err != nil {
			t.Errorf("the key %q of a request that has ended: %v", key, err)
		}
		_ = lease.Release(t.Context())
	}
	if want := min(max(int(received.Load())-fine, 0), 1); len(warned) != want {
		t.Errorf("%d events about %d panics: %v", len(warned), received.Load(), warned)
	}
	for _, event := range warned {
		if text := event.Err.Error(); !strings.Contains(text, kind.String()) || strings.Contains(text, "\n") {
			t.Errorf("the report does not name the event, or has several lines: %s", text)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	noError(t, locks.Close(ctx))
	sent = make(map[core.EventKind]int)
	for _, event := range events.all() {
		sent[event.Kind]++
	}
	return sent
}

package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
		_, done, err := core.Enter(ctx, locks, form{"a": "k", "b": "j"}, field("a"), field("b"))
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
	"Interrupt": func(ctx context.Context, locks *core.Locker) error {
		a, err := locks.With(core.WithInterrupted(core.Rerun)).Begin(ctx, "k", nil)
		if err != nil {
			return err
		}
		time.Sleep(4 * observedTTL)
		return a.Interrupt(ctx)
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
	for name, enter := range entrances {
		for way, end := range ways {
			for kind := core.Acquired; kind <= core.Closing; kind++ {
				t.Run(name+"/"+way+" at "+kind.String(), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { testBrokenObserver(t, kind, end, enter, way == "panics") })
				})
			}
		}
	}
}

// testBrokenObserver takes a lock twice, the second time by a caller that waits, while an observer
// is broken at one kind of event.
func testBrokenObserver(
	t *testing.T, kind core.EventKind, end func(), enter func(context.Context, *core.Locker) error, wantNoError bool,
) {
	t.Helper()
	events, counts := &recorder{}, &gauges.Gauges{}
	var received atomic.Int32
	var over atomic.Bool
	locks := locktest.New(t, core.WithTTL(observedTTL), core.WithWait(time.Hour),
		core.WithObserver(func(e core.Event) {
			if e.Kind == kind && !over.Load() {
				received.Add(1)
				end()
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
	if got := len(events.of(kind)); got != int(received.Load()) && kind != core.Warned {
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
	if want := min(int(received.Load()), 1); len(warned) != want {
		t.Errorf("%d events about %d panics: %v", len(warned), received.Load(), warned)
	}
	for _, event := range warned {
		if text := event.Err.Error(); !strings.Contains(text, kind.String()) || strings.Contains(text, "\n") {
			t.Errorf("the report does not name the event, or has several lines: %s", text)
		}
	}
	if err := locks.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// The report also goes to slog.Default, with the stack and without the text of the panic, which may
// contain the key. Observers that panic at the report, too, do not repeat it without end.
func TestPanicOfAnObserverIsLogged(t *testing.T) { //nolint:paralleltest // slog.Default belongs to the process
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	var missing map[string]int
	locks := newLocker(t, newEmbedded(t), core.WithObserver(func(e core.Event) { panic(e.Key.Raw()) }),
		core.WithObserver(func(e core.Event) { missing[e.Name]++ }))
	release(t, lock(t, locks, "secret"))
	release(t, lock(t, locks, "secret"))
	for _, want := range []string{
		`an observer panicked at the event \"acquired\": string`, `at the event \"warned\": assignment to entry in nil map`,
		"TestPanicOfAnObserverIsLogged", "level=ERROR",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 6 || strings.Contains(log.String(), "secret") {
		t.Errorf("%d lines for two observers and three kinds of event, or the key:\n%s", lines, log.String())
	}
}

// An observer that blocks at an event of a renewal holds up one goroutine, and not one for each
// renewal. Once it receives again, it learns how many events of each kind were dropped.
func TestObserverThatBlocksIsToldWhatItMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events, blocked := &recorder{}, make(chan struct{})
		locks := locktest.New(t, core.WithTTL(100*time.Millisecond), core.WithObserver(func(e core.Event) {
			if e.Kind == core.Renewed {
				<-blocked
			}
			events.record(e)
		}))
		keys := make([]string, 64)
		for i := range keys {
			keys[i] = fmt.Sprint(i)
		}
		leases, err := locks.LockAll(t.Context(), keys)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		before := runtime.NumGoroutine()
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if now := runtime.NumGoroutine(); now > before+2000 { // other tests run, too
			t.Errorf("%d goroutines after thousands of renewals, %d before", now, before)
		}
		locks.Expire("7")
		<-leases.Lease("7").Context().Done()
		wantError(t, leases.Release(t.Context()), core.ErrLost)
		close(blocked)
		synctest.Wait()
		warned := events.of(core.Warned)
		if len(warned) != 1 || !strings.Contains(warned[0].Err.Error(), " renewed") || strings.Contains(warned[0].Err.Error(), "lost") {
			t.Errorf("warned: %v", warned)
		}
		if len(events.of(core.Lost)) != 1 || len(events.of(core.Released)) < len(keys) {
			t.Errorf("%d lost, %d released", len(events.of(core.Lost)), len(events.of(core.Released)))
		}
	})
}

package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// The report also goes to slog.Default, with the stack and without the text of the panic, which may
// contain the key. Observers that panic at the report, too, do not repeat it without end.
func TestPanicOfAnObserverIsLogged(t *testing.T) { //nolint:paralleltest // slog.Default belongs to the process
	log := &logBuffer{}
	defer log.beDefault()()
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
	if lines := strings.Count(log.String(), "\n"); lines != 6 || len(hasProcess.FindAllString(log.String(), -1)) != lines || strings.Contains(log.String(), "secret") {
		t.Errorf("%d lines for two observers and three kinds of event, or the key:\n%s", lines, log.String())
	}
}

// An observer that blocks at an event of a renewal holds up one goroutine, and not one for each
// renewal. Once it receives again, it learns how many events of each kind were dropped.
func TestObserverThatBlocksIsToldWhatItMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events, blocked := &recorder{}, make(chan struct{})
		var calls atomic.Int32 // that block
		locks := locktest.New(t, core.WithTTL(100*time.Millisecond), core.WithObserver(func(e core.Event) {
			if e.Kind == core.Renewed {
				calls.Add(1)
				<-blocked
			}
			events.record(e)
		}))
		keys := make([]string, 64)
		for i := range keys {
			keys[i] = fmt.Sprint(i)
		}
		leases, err := locks.LockAll(t.Context(), keys)
		noError(t, err)
		time.Sleep(2500 * time.Millisecond) // 4,800 renewals: more than there is room for
		synctest.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls of the observer block after thousands of renewals", n)
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

// A panickingHandler is a handler of slog with the same bug as the observer.
type panickingHandler struct{ slog.Handler }

// Handle panics.
func (panickingHandler) Handle(context.Context, slog.Record) error { panic("a bug of the log") }

func TestPanicOfAnObserverAndOfTheLog(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t, core.WithLogger(slog.New(panickingHandler{slog.DiscardHandler})),
		core.WithObserver(func(core.Event) { panic("a bug of the observer") }))
	lease, err := locks.Lock(t.Context(), "k")
	noError(t, err)
	noError(t, lease.Release(t.Context()))
}

package core_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestEventsOfALock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 2 * time.Second // HeldLong comes after three TTLs
		events, second := &recorder{}, &recorder{}
		locks := locktest.New(t, core.WithTTL(ttl), core.WithObserver(events.record), core.WithObserver(second.record))

		lease := lock(t, locks.Locker, "k")
		wantError(t, errorOf(locks.TryLock(t.Context(), "k")), core.ErrBusy)
		next := startLock(t, locks.Locker, "k")
		locks.AwaitWaiting("k", 1)
		time.Sleep(4 * ttl)
		if len(events.of(core.Waiting)) != 1 || len(events.of(core.Renewed)) == 0 {
			t.Errorf("waiting: %+v, renewed: %+v", events.of(core.Waiting), events.of(core.Renewed))
		}
		if long := events.of(core.HeldLong); len(long) != 1 || long[0].Held < 3*ttl {
			t.Errorf("held long: %+v", long)
		}
		release(t, lease)
		release(t, next())
		synctest.Wait() // the observer has received all events

		acquired := events.of(core.Acquired)
		if len(acquired) != 2 || acquired[0].Queued || acquired[0].Handover != core.Free || acquired[0].Waited > ttl ||
			!acquired[1].Queued || acquired[1].Handover != core.Passed || acquired[1].Waited != 4*ttl {
			t.Errorf("acquired: %+v", acquired)
		}
		if refused := events.of(core.Refused); len(refused) != 1 || refused[0].Queued {
			t.Errorf("refused: %+v", refused)
		} else {
			wantError(t, refused[0].Err, core.ErrBusy)
		}
		// Each holder reports its release on a goroutine of its own, in any order.
		released := events.of(core.Released)
		slices.SortFunc(released, func(a, b core.Event) int { return cmp.Compare(b.Held, a.Held) })
		if len(released) != 2 || released[0].Held != 4*ttl || released[0].Err != nil || released[1].Err != nil {
			t.Errorf("released: %+v", released)
		}
		if len(second.of(core.Acquired)) != 2 {
			t.Error("the second observer received no events")
		}

		lease = lock(t, locks.Locker, "k")
		locks.Expire("k")
		<-lease.Context().Done()
		synctest.Wait()
		lost := events.of(core.Lost)
		if len(lost) != 1 {
			t.Fatalf("lost: %+v", lost)
		}
		wantError(t, lost[0].Err, core.ErrLost)
		wantError(t, lease.Release(t.Context()), core.ErrLost)
		// Expire takes and releases a lock of its own. Its event is the third one.
		if released := events.of(core.Released); len(released) != 4 {
			t.Errorf("released: %+v", released)
		} else {
			wantError(t, released[3].Err, core.ErrLost)
		}
	})
}

func TestEventDoesNotPrintItsKey(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	locks, events := observed(t, newEmbedded(t), core.WithObserver(core.SlogObserver(logger)))
	const secret = "iban DE02120300000000202051"
	lease := lock(t, locks, secret)
	_, _ = locks.TryLock(t.Context(), secret)
	token := lease.Token()
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, lease); strings.Contains(text, "DE02") || strings.Contains(text, token) {
			t.Errorf("a lease prints its key or its token: %s", text)
		}
	}
	release(t, lease)

	event := events.of(core.Acquired)[0]
	if event.Key.Raw() != secret {
		t.Error("Raw does not return the key")
	}
	asJSON, err := json.Marshal(event)
	noError(t, err)
	for _, text := range []string{
		fmt.Sprint(event), fmt.Sprintf("%+v", event), fmt.Sprintf("%#v", event), event.Key.String(), string(asJSON), log.String(),
	} {
		if strings.Contains(text, "DE02") || strings.Contains(text, token) {
			t.Errorf("prints the key or the token: %s", text)
		}
		if !strings.Contains(text, event.Key.String()) {
			t.Errorf("does not print the digest: %s", text)
		}
	}
}

func TestSlogObserver(t *testing.T) {
	t.Parallel()
	for kind, want := range map[core.EventKind]string{
		core.Acquired: "level=DEBUG msg=\"lock acquired\"",
		core.Waiting:  "level=DEBUG msg=\"lock waiting\"",
		core.Refused:  "level=DEBUG msg=\"lock refused\"",
		core.Released: "level=DEBUG msg=\"lock released\"",
		core.Renewed:  "level=DEBUG msg=\"lock renewed\"",
		core.Lost:     "level=WARN msg=\"lock lost\"",
		core.HeldLong: "level=WARN msg=\"lock held_long\"",
		core.Unlocked: "level=WARN msg=\"lock unlocked\"",

		core.Replayed:  "level=DEBUG msg=\"lock replayed\"",
		core.Committed: "level=DEBUG msg=\"lock committed\"",
		core.Restored:  "level=WARN msg=\"lock restored\"",
		core.Warned:    "level=WARN msg=\"lock warned\"",
		core.Closing:   "level=WARN msg=\"lock closing\"",

		core.OutcomeUnknown: "level=WARN msg=\"lock outcome_unknown\"",
	} {
		var log bytes.Buffer
		observe := core.SlogObserver(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		observe(core.Event{Kind: kind})
		if !strings.Contains(log.String(), want) {
			t.Errorf("%v: %s", kind, log.String())
		}
		fault := core.Event{Kind: kind, Err: fmt.Errorf("x: %w", core.ErrUnavailable)}
		log.Reset()
		observe(fault)
		if isFault := kind != core.Acquired && kind != core.Waiting && kind != core.Replayed; strings.Contains(log.String(), "WARN") != isFault {
			t.Errorf("fault in %v: %s", kind, log.String())
		}
		log.Reset()
		quiet := core.SlogObserver(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})))
		quiet(fault)
		if log.Len() != 0 {
			t.Errorf("logged below the level: %s", log.String())
		}
	}
	for kind, want := range map[core.EventKind]string{
		core.Committed: "lock not committed", core.Renewed: "lock not renewed", core.Released: "lock release not confirmed",
		core.OutcomeUnknown: "lock outcome_unknown",
	} {
		var log bytes.Buffer
		core.SlogObserver(slog.New(slog.NewTextHandler(&log, nil)))(core.Event{Kind: kind, Err: core.ErrUnavailable})
		if !strings.Contains(log.String(), `msg="`+want+`"`) {
			t.Errorf("%v failed: %s", kind, log.String())
		}
	}
	if got := core.EventKind(0).String() + core.Handover(0).String(); got != "unknownunknown" {
		t.Error(got)
	}
}

// Events that come for each retry, or that a client or a shutdown causes, are no warnings.
func TestSlogObserverWarnsOnce(t *testing.T) {
	t.Parallel()
	unavailable := fmt.Errorf("x: %w", core.ErrUnavailable)
	refusalOf := func(keyErr error) error {
		locks, events := observed(t, newEmbedded(t))
		key := core.Func(func(string) (string, error) { return "", keyErr })
		_, _, err := core.Enter(t.Context(), locks, "", key)
		if refused := events.of(core.Refused); err == nil || len(refused) != 1 {
			t.Fatalf("refused: %+v, %v", refused, err)
		}
		return events.of(core.Refused)[0].Err
	}
	for name, test := range map[string]struct {
		event core.Event
		level string
	}{
		"a failed renewal":               {core.Event{Kind: core.Renewed, Err: unavailable}, "WARN"},
		"the next failed renewal":        {core.Event{Kind: core.Renewed, Err: unavailable, Repeated: true}, "DEBUG"},
		"a commit that went on":          {core.Event{Kind: core.Committed, Repeated: true}, "WARN"},
		"held long, again":               {core.Event{Kind: core.HeldLong, Repeated: true}, "WARN"},
		"refused by Close":               {core.Event{Kind: core.Refused, Err: &core.Error{Kind: core.ErrClosed}}, "DEBUG"},
		"refused by Redis":               {core.Event{Kind: core.Refused, Err: unavailable}, "WARN"},
		"a client without a key":         {core.Event{Kind: core.Refused, Err: refusalOf(core.ErrNoKey)}, "DEBUG"},
		"an unknown client":              {core.Event{Kind: core.Refused, Err: refusalOf(teapot(401))}, "DEBUG"},
		"the key function's own failure": {core.Event{Kind: core.Refused, Err: refusalOf(errors.New("down"))}, "WARN"},
		"its service is away":            {core.Event{Kind: core.Refused, Err: refusalOf(teapot(503))}, "WARN"},
	} {
		var log bytes.Buffer
		core.SlogObserver(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))(test.event)
		if !strings.Contains(log.String(), "level="+test.level) {
			t.Errorf("%s: want %s: %s", name, test.level, log.String())
		}
	}
}

func TestCloseDrains(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	lease := lock(t, locks, "k")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	waiter := make(chan error, 1)
	go func() {
		_, err := locks.Lock(t.Context(), "k")
		waiter <- err
	}()
	wantError(t, locks.Close(ctx), context.DeadlineExceeded)
	wantError(t, suite.Receive(t, "the waiter returns", waiter), core.ErrClosed)
	suite.AwaitClosed(t, "the lease ends", lease.Context().Done())
	wantError(t, context.Cause(lease.Context()), core.ErrClosed)
	wantError(t, lease.Release(t.Context()), core.ErrClosed)
	noError(t, locks.Close(t.Context()))
}

package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// traceKey is the key of a trace among the values of a context.
type traceKey struct{}

// A user is a value of a context that prints as its name.
type user string

func (u user) String() string { return string(u) }

// traced returns a context with a trace.
func traced(ctx context.Context, trace string) context.Context {
	return context.WithValue(ctx, traceKey{}, user(trace))
}

// traceOf returns the trace in the context of an event.
func traceOf(e core.Event) string {
	trace, _ := e.Context().Value(traceKey{}).(user)
	return string(trace)
}

// Each event of a request has the values of the context of that request.
func TestEventHasTheContextOfItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 2 * time.Second
		events := &recorder{}
		locks := locktest.New(t, core.WithTTL(ttl), core.WithObserver(events.record))
		holder, err := locks.Lock(traced(t.Context(), "holder"), "k")
		noError(t, err)
		waiter := start(func() error {
			lease, err := locks.Lock(traced(t.Context(), "waiter"), "k")
			return errors.Join(err, lease.Release(t.Context()))
		})
		locks.AwaitWaiting("k", 1)
		wantError(t, errorOf(locks.TryLock(traced(t.Context(), "refused"), "k")), core.ErrBusy)
		time.Sleep(4 * ttl)
		release(t, holder)
		noError(t, <-waiter)
		wantError(t, enter(traced(t.Context(), "no key"), locks.Locker, form{}, field("a")), core.ErrNoKey)
		wantError(t, errorOf(locks.LockAll(traced(t.Context(), "empty"), []string{"a", ""})), core.ErrNoKey)
		both, err := locks.LockAll(traced(t.Context(), "both"), []string{"a", "b"})
		noError(t, err)
		locks.Expire("a")
		<-both.Context().Done()
		wantError(t, both.Release(t.Context()), core.ErrLost)
		synctest.Wait()

		seen := map[string]bool{}
		for _, event := range events.all() {
			seen[event.Kind.String()+" "+traceOf(event)] = true
		}
		for _, want := range []string{
			"acquired holder", "renewed holder", "held_long holder", "released holder",
			"waiting waiter", "acquired waiter", "released waiter",
			"refused refused", "refused no key", "refused empty",
			"acquired both", "lost both", "released both",
		} {
			if !seen[want] {
				t.Errorf("there is no event %q: %v", want, seen)
			}
		}
	})
}

// The events of an attempt have the context of Begin, and those of copies have their own.
func TestEventsOfAnAttemptHaveItsContext(t *testing.T) {
	t.Parallel()
	locks, events := observed(t, newEmbedded(t))
	a, err := locks.Begin(traced(t.Context(), "first"), "k", nil)
	noError(t, err)
	noError(t, a.Commit(t.Context(), []byte("answer")))
	if _, err := locks.Begin(traced(t.Context(), "copy"), "k", nil); err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, "all events are observed", func() bool { return len(events.all()) == 4 })
	for _, event := range events.all() {
		want := "first"
		if event.Kind == core.Replayed {
			want = "copy"
		}
		if got := traceOf(event); got != want || !event.Idempotent {
			t.Errorf("%v: the context is that of %q, attempt %t", event.Kind, got, event.Idempotent)
		}
	}
}

// A request that finds an attempt of another process that died is the one in the event.
func TestUnknownOutcomeHasTheContextOfTheCopy(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	noError(t, begin(t, newLocker(t, rdb, core.WithLogger(nil)), "k").Unknown(t.Context(), nil)) // which nobody reports
	locks, events := observed(t, rdb, core.WithName("payments"))
	wantError(t, errorOf(locks.Begin(traced(t.Context(), "copy"), "k", []byte("f"))), core.ErrOutcomeUnknown)
	suite.Eventually(t, "the outcome is reported", func() bool { return len(events.of(core.OutcomeUnknown)) > 0 })
	event := events.of(core.OutcomeUnknown)[0]
	if traceOf(event) != "copy" || event.Name != "payments" || !event.Idempotent {
		t.Errorf("the context is that of %q, name %q, attempt %t", traceOf(event), event.Name, event.Idempotent)
	}
}

// Events that belong to no lease have a context, too.
func TestContextOfOtherEvents(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks, events := observed(t, rdb, core.WithFailOpen(true))
	noError(t, locks.Check(traced(t.Context(), "check")))
	adapter.Warn(locks, "a mistake", errors.New("a mistake"))
	lease := lock(t, locks, "held")
	closing, cancel := context.WithTimeout(traced(t.Context(), "close"), time.Millisecond)
	defer cancel()
	_ = rdb.Close()
	noError(t, enter(traced(t.Context(), "unlocked"), locks, form{"a": "1"}, field("a").Named("account")))
	_ = locks.Close(closing)
	_ = lease.Release(t.Context())
	if got := events.of(core.Warned); len(got) != 2 || traceOf(got[0]) != "check" || traceOf(got[1]) != "" {
		t.Errorf("warned: %+v", got)
	}
	if got := events.of(core.Unlocked); len(got) != 1 || traceOf(got[0]) != "unlocked" || got[0].Name != "account" {
		t.Errorf("unlocked: %+v", got)
	}
	if got := events.of(core.Closing); len(got) != 1 || traceOf(got[0]) != "close" {
		t.Errorf("closing: %+v", got)
	}
	if (core.Event{}).Context() == nil {
		t.Error("the zero Event has no context")
	}
}

// A valueContext is a context that is no pointer, so that a printer could reach its value.
type valueContext struct {
	context.Context
	Secret string
}

// Whatever the context of a request contains, a printed event does not show it.
func TestEventDoesNotPrintItsContext(t *testing.T) {
	t.Parallel()
	const secret = "ada@example.org"
	for name, ctx := range map[string]context.Context{
		"a value":          traced(t.Context(), secret),
		"a struct":         valueContext{t.Context(), secret},
		"without a cancel": context.WithoutCancel(traced(t.Context(), secret)),
	} {
		var log bytes.Buffer
		locks, events := observed(t, newEmbedded(t))
		if err := locks.Do(ctx, "k", func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
		wantError(t, enter(ctx, locks, form{}, field("a")), core.ErrNoKey)
		suite.Eventually(t, "all events are observed", func() bool { return len(events.all()) == 3 })
		for _, event := range events.all() {
			slog.New(slog.NewTextHandler(&log, nil)).Info("x", "event", event)
			for _, format := range []string{"%v", "%+v", "%#v", "%s", "%d", "%q"} {
				for _, text := range []string{fmt.Sprintf(format, event), fmt.Sprintf(format, &event), fmt.Sprintf(format, []core.Event{event}), log.String()} {
					if strings.Contains(text, secret) {
						t.Errorf("%s: %s prints a value of the context: %s", name, format, text)
					}
				}
			}
		}
	}
}

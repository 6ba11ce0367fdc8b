package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

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
	if got := core.EventKind(0).String() + core.Grant(0).String(); got != "unknownunknown" {
		t.Error(got)
	}
}

// Events that come for each retry, or that a client or a shutdown causes, are no warnings.
func TestSlogObserverWarnsOnce(t *testing.T) {
	t.Parallel()
	unavailable := fmt.Errorf("x: %w", core.ErrUnavailable)
	refusalOf := func(keyErr error) error {
		locks, events := observed(t, newEmbedded(t))
		key := core.KeyOf(func(string) (string, error) { return "", keyErr })
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

func TestSlogObserverLogsNameAndEnding(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	locks := newLocker(t, newEmbedded(t), logTo(&log), core.WithName("payments"))
	noError(t, begin(t, locks, "k").Abort(t.Context()))
	release(t, lock(t, locks, "k"))
	for _, want := range []string{
		`msg="lock acquired" key=`, "name=payments idempotent=true waited=", "name=payments idempotent=true held=", "ending=abort\n",
		"name=payments waited=", "name=payments held=",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
	if strings.Count(log.String(), "ending=") != 1 {
		t.Errorf("endings of plain locks:\n%s", log.String())
	}
}

// A handler of log/slog finds the trace in the context of the line.
func TestSlogObserverLogsWithTheContextOfTheRequest(t *testing.T) {
	t.Parallel()
	var traces traceHandler
	locks := newLocker(t, newEmbedded(t), core.WithObserver(core.SlogObserver(slog.New(&traces))))
	if err := locks.Do(traced(t.Context(), "mine"), "k", func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, "both lines are logged", func() bool { return traces.count("mine") == 2 })
}

// A traceHandler is a handler of log/slog that keeps the trace of each line.
type traceHandler struct {
	slog.Handler
	mu     sync.Mutex
	traces []string
}

func (h *traceHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle keeps the trace of the context.
func (h *traceHandler) Handle(ctx context.Context, _ slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	trace, _ := ctx.Value(traceKey{}).(user)
	h.traces = append(h.traces, string(trace))
	return nil
}

// count returns how many lines have the trace.
func (h *traceHandler) count(trace string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, got := range h.traces {
		if got == trace {
			n++
		}
	}
	return n
}

func TestObserverHearsOfKeysThatCannotBeRead(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	locks, events := observed(t, newEmbedded(t), logTo(&log))
	for _, key := range []core.Key[string]{failing(nil), core.KeyOf(accountOf), failing(core.ErrSkip)} {
		_, release, err := core.Enter(t.Context(), locks, "", key)
		release()
		if errors.Is(err, core.ErrSkip) {
			t.Error(err)
		}
	}
	refused := events.of(core.Refused)
	if len(refused) != 2 || !errors.Is(refused[0].Err, core.ErrNoKey) || !refused[0].Key.IsEmpty() {
		t.Errorf("events %+v", refused)
	}
	for _, want := range []string{
		`level=DEBUG msg="lock refused" waited=0s error="reqlock: no key: Header(\"X-Account\") is empty"`,
		`level=WARN msg="lock refused" waited=0s error="reqlock: key function: core_test.accountOf: no database"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
}

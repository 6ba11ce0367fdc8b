package core_test

import (
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

// An event that the logger of WithLogger gets has no second line.
func TestSlogObserverLogsWhatWithLoggerLeaves(t *testing.T) {
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
		want  string // "": WithLogger logs it
	}{
		"acquired":                 {core.Event{Kind: core.Acquired}, "lock acquired"},
		"waiting":                  {core.Event{Kind: core.Waiting}, "lock waiting"},
		"released":                 {core.Event{Kind: core.Released}, "lock released"},
		"a failed release":         {core.Event{Kind: core.Released, Err: unavailable}, ""},
		"released after a loss":    {core.Event{Kind: core.Released, Err: core.ErrLost}, "lock released"},
		"renewed":                  {core.Event{Kind: core.Renewed}, "lock renewed"},
		"a failed renewal":         {core.Event{Kind: core.Renewed, Err: unavailable}, ""},
		"the next failed renewal":  {core.Event{Kind: core.Renewed, Err: unavailable, Repeated: true}, "lock not renewed"},
		"lost":                     {core.Event{Kind: core.Lost}, ""},
		"held long":                {core.Event{Kind: core.HeldLong, Repeated: true}, ""},
		"unlocked":                 {core.Event{Kind: core.Unlocked, Err: unavailable}, ""},
		"replayed":                 {core.Event{Kind: core.Replayed}, "lock replayed"},
		"searched":                 {core.Event{Kind: core.Searched}, "lock searched"},
		"handed over":              {core.Event{Kind: core.HandedOver}, "lock handed_over"},
		"committed":                {core.Event{Kind: core.Committed}, "lock committed"},
		"a failed commit":          {core.Event{Kind: core.Committed, Err: unavailable}, ""},
		"a commit that went on":    {core.Event{Kind: core.Committed, Repeated: true}, ""},
		"restored":                 {core.Event{Kind: core.Restored}, ""},
		"warned":                   {core.Event{Kind: core.Warned}, ""},
		"closing":                  {core.Event{Kind: core.Closing}, ""},
		"an unknown outcome":       {core.Event{Kind: core.OutcomeUnknown, Err: unavailable}, ""},
		"an outage":                {core.Event{Kind: core.Outage, Err: unavailable}, ""},
		"its end":                  {core.Event{Kind: core.Recovered}, ""},
		"refused by Redis":         {core.Event{Kind: core.Refused, Err: unavailable}, ""},
		"refused by Close":         {core.Event{Kind: core.Refused, Err: &core.Error{Kind: core.ErrClosed}}, "lock refused"},
		"a client without a key":   {core.Event{Kind: core.Refused, Err: refusalOf(core.ErrNoKey)}, "lock refused"},
		"a key function's failure": {core.Event{Kind: core.Refused, Err: refusalOf(errors.New("down"))}, "lock refused"},
	} {
		var log logBuffer
		core.SlogObserver(log.logger())(test.event)
		if got := log.String(); (got != "") != (test.want != "") || !strings.Contains(got, `level=DEBUG msg="`+test.want) && test.want != "" {
			t.Errorf("%s: want %q, logged %q", name, test.want, got)
		}
	}
	if got := core.EventKind(0).String() + core.Grant(0).String(); got != "unknownunknown" {
		t.Error(got)
	}
}

// What an operator changes has the level INFO, and the names of its attributes are stable. WithLogger does not log it.
func TestSlogObserverLogsWhatAnOperatorChanges(t *testing.T) {
	t.Parallel()
	change := &core.Change{By: "ada", Why: "it hangs", Before: "unknown", After: "done"}
	const attributes = ` by=ada why="it hangs" before=unknown after=done`
	for want, event := range map[string]core.Event{
		`msg="lock operator_resolved" idempotent=true` + attributes: {Kind: core.OperatorResolved, Idempotent: true, Change: change},
		`msg="lock operator_revoked" shared=true` + attributes:      {Kind: core.OperatorRevoked, Shared: true, Change: change},
		`msg="lock operator_freed"` + attributes:                    {Kind: core.OperatorFreed, Change: change},
		`msg="lock operator_freed" by="" why="" before="" after=""`: {Kind: core.OperatorFreed, Change: &core.Change{}},
		`msg="lock operator_revoked not confirmed"` + attributes + ` error="reqlock: redis unavailable"`: {
			Kind: core.OperatorRevoked, Change: change, Err: core.ErrUnavailable,
		},
	} {
		var log logBuffer
		core.SlogObserver(log.logger())(event)
		if got := log.String(); !strings.HasSuffix(got, " level=INFO "+want+"\n") {
			t.Errorf("want %s, logged %s", want, got)
		}
	}
	var log logBuffer
	locks := newLocker(t, newEmbedded(t), core.WithLogger(log.logger()), core.WithObserver(core.SlogObserver(log.logger())))
	key, err := core.EndpointKey("POST", "/payments", "7")
	noError(t, err)
	seen := interrupted(t, locks, key)
	log.Reset()
	noError(t, locks.Resolve(asAda(t.Context(), t), key, core.Done(), seen))
	if got := log.String(); strings.Count(got, "operator_resolved") != 1 || !strings.Contains(got, " endpoint_key="+key+" attempt="+seen.String()+"\n") {
		t.Error(got)
	}
}

func TestSlogObserverLogsNameAndEnding(t *testing.T) {
	t.Parallel()
	var log logBuffer
	locks := newLocker(t, newEmbedded(t), log.all(core.WithName("payments"))...)
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
	locks, events := observed(t, newEmbedded(t))
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
	for i, want := range []string{`reqlock: no key: Header("X-Account") is empty`, `reqlock: key function: core_test.accountOf: no database`} {
		if got := refused[i].Err.Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

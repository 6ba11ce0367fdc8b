package adapter

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Unknown gets each failure, and no success. It decides before Stored, and after the handler.
func TestUnknownGetsFailures(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	locks := locktest.New(t).Locker
	for name, test := range map[string]struct {
		handler func(run)
		want    []core.Failure
	}{
		"a success":         {func(r run) { r.answers(201) }, nil},
		"a redirection":     {func(r run) { r.answers(303) }, nil},
		"no answer":         {func(run) {}, nil},
		"no other protocol": {func(r run) { r.WriteHeader(101) }, []core.Failure{{Status: 101}}},
		"a stored refusal":  {func(r run) { r.answers(400) }, []core.Failure{{Status: 400}}},
		"a failure":         {func(r run) { r.answers(503) }, []core.Failure{{Status: 503}}},
		"a panic":           {func(run) { panic("crash") }, []core.Failure{{Panic: true}}},
		"a panic in a 201":  {func(r run) { r.answers(201); panic("crash") }, []core.Failure{{Status: 201, Panic: true}}},
		"an error":          {func(r run) { r.x.SetError(broken); r.answers(500) }, []core.Failure{{Status: 500, Err: broken}}},
		"an error, left":    {func(r run) { r.x.SetError(broken); r.x.SetFailed(0) }, []core.Failure{{Err: broken}}},
		"an error, and 201": {func(r run) { r.x.SetError(broken); r.answers(201) }, nil},
		"a disconnect":      {func(r run) { r.cancel(); r.answers(500) }, []core.Failure{{Status: 500, Err: context.Canceled}}},
		"an error, disconnect": {func(r run) {
			r.cancel()
			r.x.SetError(broken)
			r.answers(500)
		}, []core.Failure{{Status: 500, Err: broken}}},
		"a decision": {func(r run) { r.decides(core.EndCommit); r.answers(500) }, nil},
		"a bypass":   {func(r run) { r.answers(500); r.x.SetSent(200) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []core.Failure
			endpoint := newEndpoint(t, locks, core.WithUnknown(func(f core.Failure) bool {
				got = append(got, f)
				return true
			}))
			first := runOnce(t, endpoint, name, test.handler)
			if len(got) != len(test.want) || len(got) > 0 && got[0] != test.want[0] {
				t.Errorf("%+v, want %+v", got, test.want)
			}
			later := next(t, endpoint, name, first)
			if isUnknown := errors.Is(later, core.ErrOutcomeUnknown); isUnknown != (test.want != nil) {
				t.Errorf("next: %v", later)
			}
		})
	}
}

// If Unknown is not set, an answer that Stored stores has a known outcome. If Unknown is
// set, it decides first.
func TestUnknownDecidesBeforeStored(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	always := func(isTrue bool) []core.Option {
		return []core.Option{core.WithUnknown(func(core.Failure) bool { return isTrue })}
	}
	for name, test := range map[string]struct {
		uncertain []core.Option
		stored    bool
		want      error
	}{
		"by default, stored":     {nil, true, errReplays},
		"by default, not stored": {nil, false, core.ErrOutcomeUnknown},
		"uncertain, stored":      {always(true), true, core.ErrOutcomeUnknown},
		"uncertain, not stored":  {always(true), false, core.ErrOutcomeUnknown},
		"certain, stored":        {always(false), true, errReplays},
		"certain, not stored":    {always(false), false, errRuns},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := newEndpoint(t, locks, append(test.uncertain, core.WithStored(func(int) bool { return test.stored }))...)
			first := runOnce(t, endpoint, name, func(r run) { r.answers(500) })
			if got := next(t, endpoint, name, first); !errors.Is(got, test.want) {
				t.Errorf("next: %v, want %v", got, test.want)
			}
		})
	}
}

// If Unknown panics, the outcome is unknown.
func TestUnknownPanics(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for name, end := range map[string]func(){"the handler returns": func() {}, "the handler panics": func() { panic("crash") }} {
		calls := 0
		endpoint := newEndpoint(t, locks, core.WithUnknown(func(core.Failure) bool {
			if calls++; calls == 1 {
				panic("Unknown")
			}
			return false
		}))
		runOnce(t, endpoint, name, func(r run) {
			r.answers(503)
			end()
		})
		if got := next(t, endpoint, name, nil); !errors.Is(got, core.ErrOutcomeUnknown) {
			t.Errorf("%s: next: %v", name, got)
		}
	}
}

// The event of an unknown outcome says what the handler did, and nothing from the request.
func TestUnknownOutcomeSaysWhy(t *testing.T) {
	t.Parallel()
	panics := []core.Option{core.WithUnknown(func(core.Failure) bool { panic("Unknown") })}
	const panicked = "reqlock: the handler panicked or ended its goroutine"
	for name, test := range map[string]struct {
		opts    []core.Option
		handler func(run)
		want    string
	}{
		"a status":      {nil, func(r run) { r.answers(502) }, "reqlock: the handler ended with status 502"},
		"a left status": {nil, func(r run) { r.x.SetError(errors.New("secret")); r.x.SetFailed(500) }, "reqlock: the handler ended with status 500"},
		"no status":     {nil, func(r run) { r.x.SetError(errors.New("secret")); r.x.SetFailed(0) }, "reqlock: the handler failed without a status"},
		"a resent request": {nil, func(r run) {
			proxied := newPass(&r.x.pass, false)
			proxied.run()
			proxied.resend()
			proxied.returned(nil)
			proxied.leave()
			r.answers(409)
		}, "reqlock: the proxy has sent the request more than once"},
		"a panic":         {nil, func(run) { panic("secret") }, panicked},
		"a Goexit":        {nil, func(run) { runtime.Goexit() }, panicked},
		"a panic, stored": {nil, func(r run) { r.decides(core.EndCommit); panic("secret") }, panicked},
		"a decision":      {nil, func(r run) { r.decides(core.EndUnknown); r.answers(201) }, "reqlock: the handler decided EndUnknown"},
		"a disconnect":    {nil, func(r run) { r.cancel() }, "reqlock: the handler gave no answer after its context had ended"},
		"a function that panics": {
			panics, func(r run) { r.answers(503) }, "reqlock: the function of WithUnknown or WithStored panicked",
		},
		"a function that panics after a panic": {
			panics, func(run) { panic("secret") }, "reqlock: the function of WithUnknown or WithStored panicked",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := make(chan core.Event, 9)
			locks := locktest.New(t, core.WithObserver(func(e core.Event) {
				if e.Kind == core.OutcomeUnknown {
					events <- e
				}
			}))
			endpoint := newEndpoint(t, locks.Locker, test.opts...)
			runOnce(t, endpoint, "k", test.handler)
			if event := suite.Receive(t, "an event", events); event.Err == nil || event.Err.Error() != test.want {
				t.Errorf("%v, want %s", event.Err, test.want)
			}
		})
	}
}

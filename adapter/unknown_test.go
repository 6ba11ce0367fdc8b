package adapter

import (
	"errors"
	"runtime"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

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

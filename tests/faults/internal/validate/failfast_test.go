package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// In these histories an outage lasts from 1 s to 5 s, and process 1 knows of it at 1.1 s.
// Clients are refused at once after 0.5 s, so a call at 2 s must be.
func TestNewCallsAreRefusedAtOnceInALongOutage(t *testing.T) {
	t.Parallel()
	const commands, slack = ttl / 4, int64(failFastSlack) / ms
	outage := func(failFast int64, more func(*builder)) func(*builder) {
		return func(t *builder) {
			t.FailFast = failFast * ms
			t.disrupt("the server is paused", 990, 5010)
			t.disrupt(Outage+": the server is paused", 1000, 5000)
			t.call(1, history.Try, "k", 1001, 1100, history.Unavailable)
			more(t)
		}
	}
	after := func(more func(*builder)) func(*builder) { return outage(500, more) }
	call := func(process int, from, to int64, outcome history.Outcome) func(*builder) {
		return func(t *builder) { t.call(process, history.Lock, "k", from, to, outcome).Wait = max(0, to-from) * ms }
	}
	granted := func(process int, from, to int64) func(*builder) {
		return func(t *builder) {
			t.grant(process, "k", "a", from, to, 10).ValidUntil = (to + ttl) * ms
			t.release("a", to+1, to+2)
		}
	}
	and := func(all ...func(*builder)) func(*builder) {
		return func(t *builder) {
			for _, one := range all {
				one(t)
			}
		}
	}
	report := []string{"fail-fast"}
	runCases(t, []testCase{
		{"refused at once", after(call(1, 2000, 2001, history.Unavailable)), nil},
		{"refused within a command", after(call(1, 2000, 2000+commands+slack, history.Unavailable)), nil},
		{"refused later", after(call(1, 2000, 2001+commands+slack, history.Unavailable)), report},
		{"waited to the end of its wait", after(call(1, 2000, 3000, history.WaitTimeout)), report},
		{"waited to its deadline", after(call(1, 2000, 3000, history.Deadline)), report},
		{"waited to the end of the outage", after(granted(1, 2000, 5020)), report},
		{"an attempt waited", after(func(t *builder) {
			t.call(1, history.Begin, "p", 2000, 3000, history.WaitTimeout).Wait = 1000 * ms
		}), report},
		{"waits without end", after(call(1, 2000, 0, history.None)), []string{"fail-fast", "liveness"}},
		{"waited from before", after(granted(1, 900, 5020)), nil},
		{"waited from before the time", after(granted(1, 1100+500+slack, 5020)), nil},
		{"waited from after the time", after(granted(1, 1101+500+slack, 5020)), report},
		{"called at the end of the outage", after(granted(1, 5000-slack, 5020)), nil},
		{"called before the end of the outage", after(granted(1, 4999-slack, 5020)), report},
		{"a process that knew nothing", after(granted(2, 2000, 5020)), nil},
		{"a process that has just noticed", after(and(call(2, 1700, 1800, history.Unavailable), granted(2, 2000, 5020))), nil},
		{"clients are never refused at once", outage(0, granted(1, 2000, 5020)), nil},
		{"another disruption", func(t *builder) {
			t.FailFast = 500 * ms
			t.disrupt("commands are late", 1000, 5000)
			t.call(1, history.Try, "k", 1001, 1100, history.Unavailable)
			granted(1, 2000, 5020)(t)
		}, nil},
		{"waited behind a holder of its process", after(func(t *builder) {
			t.grant(1, "k", "b", 900, 910, 9).ValidUntil = 2000 * ms
			t.end(history.Release, "b", 2010, 2020, history.Lost).ReliedUntil = 2000 * ms
			call(1, 1990, 3000, history.WaitTimeout)(t)
		}), nil},
		{"waited behind a holder that had lost its lease", after(func(t *builder) {
			t.grant(1, "k", "b", 900, 910, 9).ValidUntil = 1500 * ms
			t.end(history.Release, "b", 1510, 1520, history.Lost).ReliedUntil = 1500 * ms
			call(1, 1990, 3000, history.WaitTimeout)(t)
		}), report},
		{"waited behind a holder of another process", after(func(t *builder) {
			t.grant(2, "k", "b", 900, 910, 9).ValidUntil = 2000 * ms
			t.end(history.Release, "b", 2010, 2020, history.Lost).ReliedUntil = 2000 * ms
			call(1, 1990, 3000, history.WaitTimeout)(t)
		}), report},
		{"a process that was paused", after(and(func(t *builder) { t.pause(1, 2010, 2900) }, call(1, 2000, 3000, history.Unavailable))), nil},
		{"a process that was paused later", after(and(func(t *builder) { t.pause(1, 2600, 2900) }, call(1, 2000, 3000, history.Unavailable))), report},
		{"a process that was killed", after(and(func(t *builder) { t.kill(1, 2100) }, call(1, 2000, 0, history.None))), nil},
		{"a process that was killed after a wait", after(and(func(t *builder) { t.kill(1, 3000) }, call(1, 2000, 0, history.None))), report},
		{"a process that lagged", after(and(func(t *builder) { t.lag(1, 2010, 2900) }, call(1, 2000, 3000, history.Unavailable))), nil},
		{"another process lagged", after(and(func(t *builder) { t.lag(2, 2010, 2900) }, call(1, 2000, 3000, history.Unavailable))), report},
		{"on a machine that stalled", after(and(func(t *builder) { t.disrupt(Stalled+" machine", 2010, 2900) }, call(1, 2000, 3000, history.Unavailable))), nil},
	})
}

// A call is refused until the first probe has an answer.
func TestProbeEndsTheRefusals(t *testing.T) {
	t.Parallel()
	const recovery = int64(probeInterval)/ms + 2*ttl/4
	refused := func(failFast, at int64) func(*builder) {
		return func(t *builder) {
			t.FailFast = failFast * ms
			t.disrupt("the server is paused", 1000, 4000)
			t.call(1, history.Lock, "k", 4000+at, 4001+at, history.Unavailable).Wait = 1000 * ms
		}
	}
	runCases(t, []testCase{
		{"until the next probe", refused(500, recovery), nil},
		{"after the next probe", refused(500, recovery+1), []string{"errors"}},
		{"without probes", refused(0, recovery), []string{"errors"}},
	})
}

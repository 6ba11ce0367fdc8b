package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestLiveness(t *testing.T) {
	t.Parallel()
	recovered := func(t *builder) { t.Recovered = 50_000 * ms }
	late := func(at int64, wait int64) func(*builder) {
		return func(t *builder) {
			recovered(t)
			t.grant(2, "k", "a", 40_000, at, 10).Wait = wait * ms
			t.lease("a").ValidUntil = (at + ttl) * ms
			t.release("a", at+1, at+2)
		}
	}
	stuck := func(t *builder) {
		t.begin(1, "p", "a", 1, 3, 1, reject)
		t.commit("a", "x", 10, 12, history.Unavailable)
		t.disrupt("cut", 10, 12)
	}
	runCases(t, []testCase{
		{"a wait that never ended", func(t *builder) {
			t.call(1, history.Lock, "k", 1, 0, history.None)
		}, []string{"liveness"}},
		{"a release that never returned", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.end(history.Release, "a", 10, 0, history.None)
		}, []string{"liveness"}},
		{"a wait that ended with its process", func(t *builder) {
			t.call(1, history.Lock, "k", 1, 0, history.None)
			t.kill(1, 20)
		}, nil},
		{"a wait that never ended of a process that was paused", func(t *builder) {
			t.call(1, history.Lock, "k", 1, 0, history.None)
			t.pause(1, 20, 30)
		}, []string{"liveness"}},
		{"served in time", late(59_000, 0), nil},
		{"served late", late(61_000, 0), []string{"liveness"}},
		{"served late, who might have had to wait for as long", late(61_000, 30_000), nil},
		{"served late by a call after all was well", func(t *builder) {
			recovered(t)
			t.grant(2, "k", "a", 52_000, 62_001, 10).ValidUntil = 63_000 * ms
			t.release("a", 62_010, 62_011)
		}, []string{"liveness"}},
		{"a wait that was over long ago", late(61_000, 10_999), []string{"liveness"}},
		{"a wait that was over not long ago", late(61_000, 11_000), nil},
		{"a wait of one that was paused", func(t *builder) {
			t.pause(2, 41_000, 60_000)
			late(61_000, 1000)(t)
		}, nil},
		{"an attempt that waits for long", func(t *builder) {
			t.call(1, history.Begin, "p", 1000, 11_201, history.Interrupted).Wait = 200 * ms
			t.call(2, history.Begin, "p", 1, 1200, history.WaitTimeout).Wait = 1100 * ms
		}, []string{"liveness"}},
		{"a payment that is stuck", func(t *builder) {
			recovered(t)
			stuck(t)
			t.call(2, history.Begin, "p", 52_000, 52_200, history.WaitTimeout).Wait = 200 * ms
		}, []string{"liveness"}},
		{"a payment that was stuck", func(t *builder) {
			recovered(t)
			stuck(t)
			t.call(2, history.Begin, "p", 52_000, 52_200, history.WaitTimeout).Wait = 200 * ms
			t.call(2, history.Begin, "p", 53_000, 53_200, history.Interrupted).Wait = 200 * ms
		}, nil},
		{"a payment that may be stuck for a TTL", func(t *builder) {
			recovered(t)
			stuck(t)
			t.call(2, history.Begin, "p", 50_000+ttl, 50_200+ttl, history.WaitTimeout).Wait = 200 * ms
		}, nil},
		{"never served again", func(t *builder) {
			recovered(t)
			t.grant(1, "k", "a", 1, 3, 10)
			t.release("a", 10, 12)
			t.call(2, history.Lock, "k", 51_000, 52_000, history.WaitTimeout).Wait = 1000 * ms
		}, []string{"liveness"}},
		{"never asked for again", func(t *builder) {
			recovered(t)
			t.grant(1, "k", "a", 1, 3, 10)
			t.release("a", 10, 12)
		}, nil},
		{"held throughout", func(t *builder) {
			recovered(t)
			t.grant(1, "k", "a", 1, 3, 10)
			t.call(2, history.Lock, "k", 51_000, 52_000, history.WaitTimeout).Wait = 1000 * ms
		}, nil},
	})
}

func TestFailuresNeedACause(t *testing.T) {
	t.Parallel()
	with := func(outcome history.Outcome, wait int64, more func(*builder)) func(*builder) {
		return func(t *builder) {
			more(t)
			t.call(1, history.Lock, "k", 5000, 5100, outcome).Wait = wait * ms
		}
	}
	nothing := func(*builder) {}
	// A commit that failed during a disruption, and a Begin of the process long after that.
	besideCommit := func(process int) func(*builder) {
		return func(t *builder) {
			t.disrupt("cut", 1000, 2000)
			t.begin(1, "pay", "a", 500, 600, 1, history.Reject)
			t.commit("a", "answer", 1100, 1900, history.Unavailable)
			t.call(process, history.Begin, "pay", 5000, 5100, history.Unavailable)
		}
	}
	runCases(t, []testCase{
		{"unavailable beside an open commit", besideCommit(1), nil},
		{"unavailable beside an open commit of another process", besideCommit(2), []string{"errors"}},
		{"failed", with(history.Failed, 0, nothing), []string{"errors"}},
		{"failed during a disruption", with(history.Failed, 0, func(t *builder) { t.disrupt("cut", 5000, 5100) }), []string{"errors"}},
		{"unavailable", with(history.Unavailable, 0, nothing), []string{"errors"}},
		{"unavailable during a disruption", with(history.Unavailable, 0, func(t *builder) { t.disrupt("cut", 5050, 0) }), nil},
		{"unavailable just after a disruption", with(history.Unavailable, 0, func(t *builder) { t.disrupt("cut", 1, 5000-ttl/2) }), nil},
		{"unavailable long after a disruption", with(history.Unavailable, 0, func(t *builder) { t.disrupt("cut", 1, 4999-ttl/2) }), []string{"errors"}},
		{"unavailable two command timeouts after a disruption", with(history.Unavailable, 0, func(t *builder) {
			t.CommandTimeout = 200 * ms
			t.disrupt("cut", 1, 4600)
		}), nil},
		{"unavailable later than that", with(history.Unavailable, 0, func(t *builder) {
			t.CommandTimeout = 200 * ms
			t.disrupt("cut", 1, 4599)
		}), []string{"errors"}},
		{"unavailable after a disruption of several servers", with(history.Unavailable, 0, func(t *builder) {
			t.Deployment = "cluster"
			t.disrupt("cut", 1, 2000)
		}), nil},
		{"unavailable long after a disruption of several servers", with(history.Unavailable, 0, func(t *builder) {
			t.Deployment = "cluster"
			t.disrupt("cut", 1, 1999)
		}), []string{"errors"}},
		{"unavailable before a disruption", with(history.Unavailable, 0, func(t *builder) { t.disrupt("cut", 5101, 0) }), []string{"errors"}},
		{"unavailable to a paused process", with(history.Unavailable, 0, func(t *builder) { t.pause(1, 4000, 5050) }), nil},
		{"unavailable when another was paused", with(history.Unavailable, 0, func(t *builder) { t.pause(2, 4000, 5050) }), []string{"errors"}},
		{"its own deadline", with(history.Deadline, 100, nothing), nil},
		{"a deadline before its own", with(history.Deadline, 200, nothing), []string{"errors"}},
		{"unavailable on a machine that stalled", with(history.Unavailable, 0, func(t *builder) { t.disrupt(Stalled+" machine", 4800, 5000-ttl/4) }), nil},
		{"unavailable on a machine that had stalled", with(history.Unavailable, 0, func(t *builder) { t.disrupt(Stalled+" machine", 1, 4999-ttl/4) }), []string{"errors"}},
		{"unavailable on a machine that stalls too much", with(history.Unavailable, 0, func(t *builder) { t.disrupt(Stalled+" machine", 10_000, 15_001) }), nil},
		{"unavailable on a machine that stalls elsewhere", with(history.Unavailable, 0, func(t *builder) { t.disrupt(Stalled+" machine", 10_000, 14_999) }), []string{"errors"}},
		{"unavailable to a process that lagged", with(history.Unavailable, 0, func(t *builder) { t.lag(1, 5050, 5080) }), nil},
		{"unavailable to a process that lagged when it asked", with(history.Unavailable, 0, func(t *builder) { t.lag(1, 4800, 5000-ttl/4) }), nil},
		{"unavailable to a process that had lagged", with(history.Unavailable, 0, func(t *builder) { t.lag(1, 4800, 4999-ttl/4) }), []string{"errors"}},
		{"unavailable to a process that lagged later", with(history.Unavailable, 0, func(t *builder) { t.lag(1, 5101, 5200) }), []string{"errors"}},
		{"unavailable to a process that lagged at the end of a long wait", func(t *builder) {
			t.lag(1, 7500, 8000-3*ttl/4)
			t.call(1, history.Lock, "k", 5000, 8000, history.Unavailable).Wait = 5000 * ms
		}, nil},
		{"unavailable to a process that lagged long before the end of a wait", func(t *builder) {
			t.lag(1, 5000, 7999-3*ttl/4)
			t.call(1, history.Lock, "k", 5000, 8000, history.Unavailable).Wait = 5000 * ms
		}, []string{"errors"}},
		{"unavailable when another lagged", with(history.Unavailable, 0, func(t *builder) { t.lag(2, 5000, 5100) }), []string{"errors"}},
		{"a deadline before its own, to a process that lagged", with(history.Deadline, 200, func(t *builder) { t.lag(1, 5000, 5100) }), []string{"errors"}},
		{"unavailable when its wait was over", with(history.Unavailable, 100, nothing), nil},
		{"unavailable before the beginning", with(history.Unavailable, 0, func(t *builder) { t.Begun = 5010 * ms }), nil},
		{"a deadline without a cause", with(history.Deadline, 0, nothing), []string{"errors"}},
		{"the end of its wait", with(history.WaitTimeout, 100, nothing), nil},
		{"the end of a wait without end", with(history.WaitTimeout, 0, nothing), []string{"errors"}},
		{"an answer that was not kept", func(t *builder) {
			t.call(1, history.Begin, "p", 1, 2, history.Unreplayable)
		}, []string{"errors"}},
	})
}

// After many failed dials a client of go-redis dials again after a second. Until then it
// returns the last error, even if the server is healthy again. Other effects on the process
// end as soon as after any disruption.
func TestAClientThatRedials(t *testing.T) {
	t.Parallel()
	const commands, outage = 2 * ttl / 4, 4000
	failed := func(t *builder, process int, from, to int64, err string) {
		t.call(process, history.Try, "k", from, to, history.Unavailable).Error = "reqlock: redis unavailable: " + err
	}
	refused := func(t *builder, process int, at int64) {
		failed(t, process, at-1, at, "dial tcp 127.0.0.1:6379: connect: connection refused")
	}
	timesOut := func(t *builder, process int, at int64) { failed(t, process, at, at+10, "i/o timeout") }
	lost := func(t *builder, process int, at int64) {
		t.grant(process, "l", "a", at, at+1, 1)
		t.end(history.LeaseEnd, "a", at+ttl, at+ttl, history.Lost).ReliedUntil = (at + ttl) * ms
	}
	report := []string{"errors"}
	after := func(outage int64, more func(*builder)) func(*builder) {
		return func(t *builder) {
			t.disrupt("cut", 1000, outage)
			more(t)
		}
	}
	runCases(t, []testCase{
		{"refuses for a second and a bit", after(outage, func(t *builder) { refused(t, 2, 5000+commands) }), nil},
		{"refuses for longer", after(outage, func(t *builder) { refused(t, 1, 5001+commands) }), report},
		{"could not connect in time", after(outage, func(t *builder) { failed(t, 1, 4890, 4900, "dial tcp 127.0.0.1:6379: i/o timeout") }), nil},
		{"refuses without a disruption", func(t *builder) { refused(t, 1, 5000) }, report},
		{"refuses while another disruption lasts", after(outage, func(t *builder) {
			t.disrupt("cut", 4800, 5000)
			refused(t, 1, 4900)
			timesOut(t, 1, 4500)
		}), report},
		{"gets no answer instead", after(outage, func(t *builder) { timesOut(t, 1, 4900) }), report},
		{"gets no answer afterwards", after(outage, func(t *builder) {
			refused(t, 1, 4300)
			refused(t, 1, 4400)
			timesOut(t, 1, 4400+commands)
		}), nil},
		{"gets no answer long afterwards", after(outage, func(t *builder) {
			refused(t, 1, 4300)
			timesOut(t, 1, 4301+commands)
		}), report},
		{"gets no answer since it still lasts", after(0, func(t *builder) {
			t.disrupt("cut", 100, 850)
			refused(t, 1, 900)
			timesOut(t, 1, 9000)
		}), nil},
		{"loses a lease", after(outage, func(t *builder) {
			refused(t, 2, 4900)
			lost(t, 2, 4900)
		}), nil},
		{"loses a lease, another was refused", after(outage, func(t *builder) {
			refused(t, 2, 4900)
			lost(t, 1, 4900)
		}), report},
		{"loses a lease, many servers", after(outage, func(t *builder) {
			t.Deployment = "cluster"
			refused(t, 1, outage+100)
			lost(t, 1, outage+3001)
		}), report},
		{"refuses for longer than many servers may", after(outage, func(t *builder) {
			t.Deployment, t.CommandTimeout = "quorum", 100*ms
			refused(t, 1, outage+1190)
			timesOut(t, 1, outage+1201)
		}), report},
	})
}

func TestMalformedHistoryIsFound(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{"no ttl", func(t *builder) { t.TTL = 0 }, []string{"malformed"}},
		{"before its call", func(t *builder) { t.grant(1, "k", "a", 5, 3, 1) }, []string{"malformed"}},
		{"never called", func(t *builder) { t.grant(1, "k", "a", 0, 3, 1) }, []string{"malformed"}},
		{"an outcome without a return", func(t *builder) { t.grant(1, "k", "a", 5, 0, 1) }, []string{"malformed"}},
		{"no outcome", func(t *builder) { t.call(1, history.Lock, "k", 1, 2, history.None) }, []string{"malformed"}},
		{"no name", func(t *builder) { t.grant(1, "k", "", 5, 6, 1) }, []string{"malformed"}},
		{"no validity", func(t *builder) { t.grant(1, "k", "a", 5, 6, 1).ValidUntil = 0 }, []string{"malformed"}},
		{"granted twice", func(t *builder) {
			t.grant(1, "k", "a", 5, 6, 1)
			t.grant(1, "k", "a", 7, 8, 2)
		}, []string{"malformed"}},
		{"of no lease", func(t *builder) {
			t.call(1, history.Release, "k", 1, 2, history.Done).Lease = "a"
		}, []string{"malformed"}},
	})
}

package traffic

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/programtb"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic/client"
)

func TestMain(m *testing.M) {
	if code, client := Main(); client {
		os.Exit(code)
	}
	suite.Main(m)
}

// start starts a workload of two processes on a server of its own.
func start(tb testing.TB, o client.Options) (*Workload, *redistest.Server) {
	tb.Helper()
	server := redistest.Start(tb)
	o.Redis, o.Clients, o.CommandTimeout = redistest.Options{Addrs: []string{server.Addr()}}, 2, 100*time.Millisecond
	return Start(tb, Settings{Processes: 2, Options: o}), server
}

// callKind is a kind of call with its outcome, or a key and the limit of its leases.
type callKind struct {
	kind    history.Kind
	outcome history.Outcome
	key     string
	limit   int
}

// allCallKinds returns what a history has sooner or later. Without it a check would have nothing
// to check.
func allCallKinds() map[callKind]bool {
	missing := map[callKind]bool{}
	for kind, outcomes := range map[history.Kind][]history.Outcome{
		history.Lock:    {history.Granted},
		history.Try:     {history.Granted, history.Busy},
		history.Extend:  {history.Done},
		history.Release: {history.Done, history.Deadline},
		history.Begin:   {history.Granted, history.Replayed, history.Interrupted, history.Unreplayable, history.Mismatch},
		history.Commit:  {history.Done},
		history.Seal:    {history.Done},
		history.Abort:   {history.Done},
	} {
		for _, outcome := range outcomes {
			missing[callKind{kind: kind, outcome: outcome}] = true
		}
	}
	for key, limits := range map[string][]int{
		"lock-0": {0}, "lock-1": {0}, "lock-2": {0}, "permits": {3}, "readers": {0, history.Unlimited}, "mixed": {0, 2, 4, history.Unlimited},
	} {
		for _, limit := range limits {
			missing[callKind{key: key, limit: limit}] = true
		}
	}
	return missing
}

func TestHistoryHasCallsOfAllKinds(t *testing.T) {
	t.Parallel()
	const minHold = 20 * time.Millisecond
	c, _ := start(t, client.Options{Seed: 1, TTL: 2 * time.Second, Attempts: 30, SharedTurns: 40, MinHold: minHold})
	missing, kept := allCallKinds(), map[history.Kind]bool{}
	suite.Eventually(t, "all kinds of calls were made", func() bool {
		for _, op := range c.journal.calls(func(history.Op) bool { return true }) {
			delete(missing, callKind{kind: op.Kind, outcome: op.Outcome})
			if op.Outcome == history.Granted {
				delete(missing, callKind{key: op.Key, limit: op.Limit})
				kept[op.Kind] = kept[op.Kind] || op.MinHold == minHold.Nanoseconds()
			}
		}
		return len(missing) == 0 && kept[history.Lock] && kept[history.Try]
	})
	var h history.History
	c.Finish(time.Minute)
	c.Fill(&h)
	checkEnds(t, h.Ops)
	checkAccesses(t, &h)
	if len(h.Sizes) != 2 || h.Sizes[0].Goroutines < 2 {
		t.Errorf("the sizes of two processes are %+v", h.Sizes)
	}
}

// checkEnds checks that each lease is ended by its client, and that the client relied on it until
// then, or until the lease's context or validity had ended.
func checkEnds(t *testing.T, ops []history.Op) {
	t.Helper()
	leases, ended, contexts := map[string]history.Op{}, map[string]bool{}, map[string]int64{}
	for _, op := range ops {
		if op.Kind == history.LeaseEnd {
			contexts[op.Lease] = op.Call
		}
		if op.Outcome == history.Granted {
			leases[op.Lease] = op
			if unfenced := op.Key == "lock-2" || op.Key == "permits" || op.Key == "mixed"; op.Episode == "" || (op.Fence == 0) != unfenced || op.ValidUntil < op.Call {
				t.Errorf("granted %+v", op)
			}
		}
	}
	for _, op := range ops {
		switch op.Kind {
		case history.Release, history.Commit, history.Seal, history.Abort:
			if ended[op.Lease] {
				continue // released twice
			}
			grant, until := leases[op.Lease], min(op.Call, op.ValidUntil)
			ended[op.Lease] = true
			if at := contexts[op.Lease]; at != 0 {
				until = min(until, at)
			}
			if op.Client != grant.Client || op.Key != grant.Key || op.Fence != grant.Fence || op.Episode != grant.Episode || op.Number != grant.Number ||
				op.ReliedUntil != until {
				t.Errorf("%+v ends %+v", op, grant)
			}
		}
	}
	if len(ended) != len(leases) {
		t.Errorf("%d of %d leases are ended", len(ended), len(leases))
	}
}

// checkAccesses checks that holders write both registers, and that readers read twice.
func checkAccesses(t *testing.T, h *history.History) {
	t.Helper()
	written, again := map[bool]map[string]int64{false: {}, true: {}}, 0
	for _, a := range h.Accesses {
		switch {
		case a.Write:
			if !a.Refused { // that of a holder whose lease was lost on a busy machine
				written[a.Fenced][a.Key]++
			}
			if (a.CheckedAt == 0) != a.Fenced || a.CheckedAt > a.At {
				t.Errorf("only unfenced writes check the lease, and before the write: %+v", a)
			}
		case a.CheckedAt != 0:
			again++
		case a.Version != written[a.Fenced][a.Key] && !a.Refused:
			t.Errorf("read after %d writes: %+v", written[a.Fenced][a.Key], a)
		}
	}
	// No holder of a permit writes.
	if len(written[true]) != 3 || len(written[false]) != 5 || again == 0 || len(h.Effects) == 0 {
		t.Errorf("written %v, read again %d times, %d effects", written, again, len(h.Effects))
	}
}

// A call that does not return stays in the history as it is: no failure of its process excuses it.
func TestStuckCallsStayInHistory(t *testing.T) {
	t.Parallel()
	var h history.History
	result := programtb.Run(t.Context(), t.Name(), func(tb testing.TB) {
		c, server := start(tb, client.Options{TTL: time.Second})
		c.AwaitGrants(10)
		for _, key := range c.settings.Keys() {
			server.Client(tb).Set(tb.Context(), key, "foreign", 0)
		}
		waits := func(op history.Op) bool { return op.Kind == history.Lock && op.Wait == 0 && op.Return == 0 }
		suite.Eventually(tb, "all clients wait without a bound", func() bool { return len(c.journal.calls(waits)) == 4 })
		c.Finish(50 * time.Millisecond)
		c.Fill(&h)
	})
	stuck := 0
	for _, op := range h.Ops {
		if op.Return == 0 {
			stuck++
		}
	}
	if result.Failed || stuck != 4 || len(h.ProcessFailures) > 0 {
		t.Errorf("%d calls have not returned, failures %v\n%s", stuck, h.ProcessFailures, result.Log)
	}
}

// A process that cannot work, or panics, fails the run, and says why.
func TestProcessThatEndsByItselfFailsRun(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(*Workload){
		"while grants are awaited": func(c *Workload) { c.AwaitGrants(1) },
		"before the end":           func(c *Workload) { c.Finish(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := programtb.Run(t.Context(), name, func(tb testing.TB) {
				c, _ := start(tb, client.Options{TTL: time.Millisecond})
				wait(c)
			})
			if !result.Failed || !strings.Contains(result.Log, "WithTTL") {
				t.Errorf("failed %v:\n%s", result.Failed, result.Log)
			}
		})
	}
}

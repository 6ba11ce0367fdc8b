package validate

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// grantedLock returns a Lock that was granted.
func grantedLock(process int, lease, episode string, call, granted int64) history.Op {
	return history.Op{
		Process: process, Kind: history.Lock, Key: "k", Call: call, Return: granted, Outcome: history.Granted,
		Lease: lease, Episode: episode, ValidUntil: granted + 400,
	}
}

func TestImpossibleGrants(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		disruption string
		ops        []history.Op
		found      bool
	}{
		"asked and granted meanwhile": {NoGrants + ": so", []history.Op{grantedLock(1, "a", "e", 110, 120)}, true},
		"in another disruption":       {"so", []history.Op{grantedLock(1, "a", "e", 110, 120)}, false},
		"asked before":                {NoGrants, []history.Op{grantedLock(1, "a", "e", 90, 120)}, false},
		"granted after":               {NoGrants, []history.Op{grantedLock(1, "a", "e", 110, 220)}, false},
		"passed on from before":       {NoGrants, []history.Op{grantedLock(1, "a", "e", 80, 90), grantedLock(1, "b", "e", 110, 120)}, false},
		"left by one that gave up": {NoGrants, []history.Op{
			{Process: 1, Kind: history.Lock, Key: "k", Call: 90, Return: 115, Outcome: history.Deadline}, grantedLock(1, "b", "f", 110, 120),
		}, false},
		"another process gave up": {NoGrants, []history.Op{
			{Process: 2, Kind: history.Lock, Key: "k", Call: 90, Return: 115, Outcome: history.Deadline}, grantedLock(1, "b", "f", 110, 120),
		}, true},
		"another has given up before": {NoGrants, []history.Op{
			{Process: 1, Kind: history.Lock, Key: "k", Call: 90, Return: 105, Outcome: history.Deadline}, grantedLock(1, "b", "f", 110, 120),
		}, true},
	} {
		h := &history.History{TTL: 400, Begun: 1, Ended: 1000, Ops: c.ops, Disruptions: []history.Disruption{{Name: c.disruption, From: 100, To: 200}}}
		if found := impossibleGrants(summarize(h)); (len(found) > 0) != c.found {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// While a minority of a quorum is disrupted, a call that waits must not fail, and must not
// wait for long.
func TestAMinorityIsNoExcuse(t *testing.T) {
	t.Parallel()
	const second = int64(1e9)
	for name, c := range map[string]struct {
		disruption, violation string
		op                    history.Op
	}{
		"a lock is unavailable": {Minority + " is ill", "errors", history.Op{Kind: history.Lock, Outcome: history.Unavailable, Return: 6 * second}},
		"a try is, which has less time": {
			Minority + " is ill", "",
			history.Op{Kind: history.Try, Outcome: history.Unavailable, Return: 6 * second},
		},
		"a lock is, of more than a minority":    {"a majority is ill", "", history.Op{Kind: history.Lock, Outcome: history.Unavailable, Return: 6 * second}},
		"a wait is long":                        {Minority + " is ill", "liveness", history.Op{Kind: history.Lock, Outcome: history.Granted, Lease: "l", ValidUntil: 1, Return: 16 * second}},
		"a wait is long, of more than that one": {"a majority is ill", "", history.Op{Kind: history.Lock, Outcome: history.Granted, Lease: "l", ValidUntil: 1, Return: 16 * second}},
	} {
		c.op.Key, c.op.Call = "k", 5*second
		h := &history.History{
			Deployment: "quorum", Unfenced: true, TTL: 4 * second / 10, Begun: second, Ended: 20 * second, Recovered: 18 * second,
			Ops: []history.Op{c.op}, Disruptions: []history.Disruption{{Name: c.disruption, From: 2 * second, To: 17 * second}},
		}
		found := ""
		for _, f := range All(h) {
			found += f.Check + " "
		}
		if strings.TrimSpace(found) != c.violation {
			t.Errorf("%s: found %q, want %q", name, found, c.violation)
		}
	}
}

// If no client asks for fencing numbers, none is missing. A split vote may refuse a Try.
func TestQuorumWithoutFences(t *testing.T) {
	t.Parallel()
	const second = int64(1e9)
	try := history.Op{Process: 1, Kind: history.Try, Key: "k", Call: 10 * second, Return: 10*second + 1, Outcome: history.Busy}
	beside := history.Op{Process: 2, Kind: history.Try, Key: "k", Call: 10*second - 1, Return: 10*second + 5, Outcome: history.Busy}
	before := grantedLock(2, "a", "e", second, second+1)
	end := history.Op{
		Process: 2, Kind: history.Release, Key: "k", Lease: "a", Call: second + 2, Return: second + 3, Outcome: history.Done,
		ReliedUntil: second + 2, ValidUntil: second + 400,
	}
	for name, c := range map[string]struct {
		deployment string
		ops        []history.Op
		violation  string
	}{
		"no fences":                         {"quorum", []history.Op{before, end}, ""},
		"refused beside another":            {"quorum", []history.Op{before, end, beside, try}, ""},
		"refused by nothing":                {"quorum", []history.Op{before, end, try}, "linearizability"},
		"beside another, by a server alone": {"server", []history.Op{before, end, beside, try}, "linearizability"},
	} {
		h := &history.History{Deployment: c.deployment, Unfenced: true, TTL: 400, CommandTimeout: 100, Begun: 1, Ended: 20 * second, Ops: c.ops}
		found := ""
		for _, f := range All(h) {
			found += f.Check
		}
		if found != c.violation {
			t.Errorf("%s: found %q, want %q", name, found, c.violation)
		}
	}
}

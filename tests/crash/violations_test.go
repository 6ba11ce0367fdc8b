package crash

import (
	"strings"
	"testing"
)

// correctObservation returns an observation without a violation: an attempt is killed after its
// effect, another attempt runs, and its answer is replayed.
func correctObservation() *observation {
	first := answer{Process: 2, Status: 201, Body: "two", Fine: true}
	replay := first
	replay.Process, replay.Replayed = 3, true
	return &observation{
		request: request{policy: rerun, key: "k"},
		writes: []write{
			{State: "R", Token: "a", Number: 1}, {State: "R", Token: "b", Number: 2}, {State: "D", Token: "b", Answer: "two"},
		},
		answers: []answer{{Status: 409, Code: "busy"}, first, replay, replay},
		effects: []effect{
			{ledgerCall{Token: "a", Number: 1}, "charge-1"},
			{ledgerCall{Token: "b", Number: 2}, "charge-2"},
		},
		uncommitted: map[int]bool{},
		committed:   func(text string) (answer, error) { return answer{Status: 201, Body: text}, nil },
	}
}

func TestChecksFindEachViolation(t *testing.T) {
	resolved := func(o *observation) {
		o.policy = reject
		o.writes = []write{{State: "R", Token: "a", Number: 1}, {}, {State: "R", Token: "b", Number: 1}, o.writes[2]}
		o.effects[1].Number = 1
		o.answers[0].Code = "outcome_unknown"
	}
	for name, test := range map[string]struct {
		wrong func(o *observation)
		finds string // a part of what is found; "" if nothing
	}{
		"nothing":                  {func(*observation) {}, ""},
		"nothing, after a resolve": {resolved, ""},
		"two commits": {func(o *observation) {
			o.writes = append(o.writes, write{State: "D", Token: "b", Answer: "two"})
		}, "and then written"},
		"a deleted record after a commit": {func(o *observation) { o.writes = append(o.writes, write{}) }, "and then written"},
		"a run after a commit": {func(o *observation) {
			o.writes = append(o.writes, write{State: "R", Token: "c", Number: 1})
		}, "and then written"},
		"a commit of an attempt that was superseded": {func(o *observation) { o.writes[2].Token = "a" }, "another attempt than the last"},
		"a number that does not rise":                {func(o *observation) { o.writes[1].Number = 1 }, "attempt 1, not 2"},
		"a number that restarts after an abort": {func(o *observation) {
			undone := write{State: "R", Token: "aborted:b", Number: 1}
			o.writes = []write{o.writes[0], o.writes[1], undone, {State: "R", Token: "c", Number: 1}}
		}, "attempt 1, not 2"},
		"a number that does not restart after a resolve": {func(o *observation) {
			resolved(o)
			o.writes[2].Number = 2
		}, "attempt 2, not 1"},
		"a second run that Reject forbids": {func(o *observation) { o.policy = reject }, "was killed"},
		"a replay that differs":            {func(o *observation) { o.answers[3].Body = "one" }, "not a replay"},
		"a replay of another status":       {func(o *observation) { o.answers[3].Status = 200 }, "not a replay"},
		"a replay of another header":       {func(o *observation) { o.answers[3].Location = "/" }, "not a replay"},
		"a replay without a commit":        {func(o *observation) { o.writes = o.writes[:2] }, "not a replay"},
		"an answer that was not committed": {func(o *observation) {
			o.answers = append(o.answers, answer{Process: 1, Status: 201, Body: "one", Fine: true})
		}, "never committed"},
		"an answer of a process that reported a failed commit": {func(o *observation) {
			o.answers = append(o.answers, answer{Process: 1, Status: 201, Body: "one", Fine: true})
			o.uncommitted[1] = true
		}, ""},
		"a replay that is not marked":                   {func(o *observation) { o.answers[2].Replayed = false }, "unmarked"},
		"a charge without an attempt":                   {func(o *observation) { o.effects[0].Token = "c" }, "never began"},
		"a charge with another number than its attempt": {func(o *observation) { o.effects[1].Number = 1 }, "which has the number"},
		"two charges of one attempt":                    {func(o *observation) { o.effects[0].ledgerCall = o.effects[1].ledgerCall }, "the second of"},
		"one charge too many": {func(o *observation) {
			resolved(o)
			o.writes = append(o.writes[:1], o.writes[2:]...)
		}, "freed 0 times"},
		"a commit without an effect":    {func(o *observation) { o.effects = o.effects[:1] }, "without an effect"},
		"an unknown outcome with Rerun": {func(o *observation) { o.answers[0].Code = "outcome_unknown" }, "outcome_unknown"},
		"an unknown outcome without an attempt": {func(o *observation) {
			*o = observation{request: request{policy: reject}, answers: []answer{{Code: "outcome_unknown"}}}
		}, "outcome_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			o := correctObservation()
			test.wrong(o)
			found := strings.Join(o.violations(), "; ")
			if (found == "") != (test.finds == "") || !strings.Contains(found, test.finds) {
				t.Errorf("found %q, want %q", found, test.finds)
			}
		})
	}
}

package crash

import (
	"strings"
	"testing"
)

// correctHistory returns a history without a violation: an attempt is killed after its
// effect, another attempt runs, and its answer is replayed.
func correctHistory() *history {
	first := answer{Process: 2, Status: 201, Body: "two", Fine: true}
	replay := first
	replay.Process, replay.Replayed = 3, true
	return &history{
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
	resolved := func(s *history) {
		s.policy = reject
		s.writes = []write{{State: "R", Token: "a", Number: 1}, {}, {State: "R", Token: "b", Number: 1}, s.writes[2]}
		s.effects[1].Number = 1
		s.answers[0].Code = "outcome_unknown"
	}
	for name, test := range map[string]struct {
		wrong func(s *history)
		finds string // a part of what is found; "" if nothing
	}{
		"nothing":                  {func(*history) {}, ""},
		"nothing, after a resolve": {resolved, ""},
		"two commits": {func(s *history) {
			s.writes = append(s.writes, write{State: "D", Token: "b", Answer: "two"})
		}, "and then written"},
		"a deleted record after a commit": {func(s *history) { s.writes = append(s.writes, write{}) }, "and then written"},
		"a run after a commit": {func(s *history) {
			s.writes = append(s.writes, write{State: "R", Token: "c", Number: 1})
		}, "and then written"},
		"a commit of an attempt that was superseded": {func(s *history) { s.writes[2].Token = "a" }, "another attempt than the last"},
		"a number that does not rise":                {func(s *history) { s.writes[1].Number = 1 }, "attempt 1, not 2"},
		"a number that restarts after an abort": {func(s *history) {
			undone := write{State: "R", Token: "aborted:b", Number: 1}
			s.writes = []write{s.writes[0], s.writes[1], undone, {State: "R", Token: "c", Number: 1}}
		}, "attempt 1, not 2"},
		"a number that does not restart after a resolve": {func(s *history) {
			resolved(s)
			s.writes[2].Number = 2
		}, "attempt 2, not 1"},
		"a second run that Reject forbids": {func(s *history) { s.policy = reject }, "was killed"},
		"a replay that differs":            {func(s *history) { s.answers[3].Body = "one" }, "not a replay"},
		"a replay of another status":       {func(s *history) { s.answers[3].Status = 200 }, "not a replay"},
		"a replay of another header":       {func(s *history) { s.answers[3].Location = "/" }, "not a replay"},
		"a replay without a commit":        {func(s *history) { s.writes = s.writes[:2] }, "not a replay"},
		"an answer that was not committed": {func(s *history) {
			s.answers = append(s.answers, answer{Process: 1, Status: 201, Body: "one", Fine: true})
		}, "never committed"},
		"an answer of a process that reported a failed commit": {func(s *history) {
			s.answers = append(s.answers, answer{Process: 1, Status: 201, Body: "one", Fine: true})
			s.uncommitted[1] = true
		}, ""},
		"a replay that is not marked":                   {func(s *history) { s.answers[2].Replayed = false }, "unmarked"},
		"a charge without an attempt":                   {func(s *history) { s.effects[0].Token = "c" }, "never began"},
		"a charge with another number than its attempt": {func(s *history) { s.effects[1].Number = 1 }, "which has the number"},
		"two charges of one attempt":                    {func(s *history) { s.effects[0].ledgerCall = s.effects[1].ledgerCall }, "the second of"},
		"one charge too many": {func(s *history) {
			resolved(s)
			s.writes = append(s.writes[:1], s.writes[2:]...)
		}, "freed 0 times"},
		"a commit without an effect":    {func(s *history) { s.effects = s.effects[:1] }, "without an effect"},
		"an unknown outcome with Rerun": {func(s *history) { s.answers[0].Code = "outcome_unknown" }, "outcome_unknown"},
		"an unknown outcome without an attempt": {func(s *history) {
			*s = history{request: request{policy: reject}, answers: []answer{{Code: "outcome_unknown"}}}
		}, "outcome_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			s := correctHistory()
			test.wrong(s)
			found := strings.Join(s.violations(), "; ")
			if (found == "") != (test.finds == "") || !strings.Contains(found, test.finds) {
				t.Errorf("found %q, want %q", found, test.finds)
			}
		})
	}
}

package crash

import (
	"strings"
	"testing"
)

// sound returns a story without a fault: an attempt has died after its effect,
// another one has run, and its answer was replayed.
func sound() *story {
	first := answer{Process: 2, Status: 201, Body: "two", Fine: true}
	replay := first
	replay.Process, replay.Replayed = 3, true
	return &story{
		question: question{policy: rerun, key: "k"},
		writes: []write{
			{State: "R", Token: "a", Number: 1}, {State: "R", Token: "b", Number: 2}, {State: "D", Token: "b", Answer: "two"},
		},
		answers: []answer{{Status: 409, Code: "busy"}, first, replay, replay},
		effects: []effect{
			{visit{Token: "a", Number: 1}, "charge-1"},
			{visit{Token: "b", Number: 2}, "charge-2"},
		},
		excused:   map[int]bool{},
		committed: func(text string) (answer, error) { return answer{Status: 201, Body: text}, nil },
	}
}

func TestTheChecksFindWhatIsWrong(t *testing.T) {
	resolved := func(s *story) {
		s.policy = reject
		s.writes = []write{{State: "R", Token: "a", Number: 1}, {}, {State: "R", Token: "b", Number: 1}, s.writes[2]}
		s.effects[1].Number = 1
		s.answers[0].Code = "outcome_unknown"
	}
	for name, test := range map[string]struct {
		wrong func(s *story)
		finds string // a part of what is found; "" if nothing
	}{
		"nothing":            {func(*story) {}, ""},
		"nothing, and freed": {resolved, ""},
		"two commits": {func(s *story) {
			s.writes = append(s.writes, write{State: "D", Token: "b", Answer: "two"})
		}, "and then written"},
		"a commit that is forgotten": {func(s *story) { s.writes = append(s.writes, write{}) }, "and then written"},
		"a run after a commit": {func(s *story) {
			s.writes = append(s.writes, write{State: "R", Token: "c", Number: 1})
		}, "and then written"},
		"a commit of an attempt that was superseded": {func(s *story) { s.writes[2].Token = "a" }, "another attempt than the last"},
		"a number that is not counted":               {func(s *story) { s.writes[1].Number = 1 }, "attempt 1, not 2"},
		"a number that an abort has forgotten": {func(s *story) {
			undone := write{State: "R", Token: "aborted:b", Number: 1}
			s.writes = []write{s.writes[0], s.writes[1], undone, {State: "R", Token: "c", Number: 1}}
		}, "attempt 1, not 2"},
		"a number that goes on after a resolve": {func(s *story) {
			resolved(s)
			s.writes[2].Number = 2
		}, "attempt 2, not 1"},
		"a run again that is not allowed": {func(s *story) { s.policy = reject }, "died"},
		"a replay that differs":           {func(s *story) { s.answers[3].Body = "one" }, "no replay"},
		"a replay of another status":      {func(s *story) { s.answers[3].Status = 200 }, "no replay"},
		"a replay of another header":      {func(s *story) { s.answers[3].Location = "/" }, "no replay"},
		"a replay of nothing":             {func(s *story) { s.writes = s.writes[:2] }, "no replay"},
		"an answer that was not committed": {func(s *story) {
			s.answers = append(s.answers, answer{Process: 1, Status: 201, Body: "one", Fine: true})
		}, "never committed"},
		"one by a process that was told": {func(s *story) {
			s.answers = append(s.answers, answer{Process: 1, Status: 201, Body: "one", Fine: true})
			s.excused[1] = true
		}, ""},
		"a replay that is not marked":      {func(s *story) { s.answers[2].Replayed = false }, "their request"},
		"a charge of nobody":               {func(s *story) { s.effects[0].Token = "c" }, "never began"},
		"a number that the handler missed": {func(s *story) { s.effects[1].Number = 1 }, "took itself for"},
		"a handler that ran twice":         {func(s *story) { s.effects[0].visit = s.effects[1].visit }, "second one"},
		"one charge too many": {func(s *story) {
			resolved(s)
			s.writes = append(s.writes[:1], s.writes[2:]...)
		}, "freed 0 times"},
		"a commit without an effect":         {func(s *story) { s.effects = s.effects[:1] }, "without an effect"},
		"an unknown outcome that runs again": {func(s *story) { s.answers[0].Code = "outcome_unknown" }, "outcome_unknown"},
		"an unknown outcome of nothing": {func(s *story) {
			*s = story{question: question{policy: reject}, answers: []answer{{Code: "outcome_unknown"}}}
		}, "outcome_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sound()
			test.wrong(s)
			found := strings.Join(s.faults(), "; ")
			if (found == "") != (test.finds == "") || !strings.Contains(found, test.finds) {
				t.Errorf("found %q, want %q", found, test.finds)
			}
		})
	}
}

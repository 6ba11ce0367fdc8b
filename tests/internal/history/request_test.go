package history_test

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/tests/internal/history"
)

// correct returns a request without a violation: an attempt is killed after its effect, another
// attempt runs, and its answer is replayed.
func correct() *history.Request {
	return &history.Request{
		Reruns: true,
		Writes: []history.Op{
			{Kind: history.Begin, Lease: "a", Number: 1},
			{Kind: history.Begin, Lease: "b", Number: 2},
			{Kind: history.Commit, Lease: "b", Record: "two"},
		},
		Answers: []history.Op{
			{Outcome: history.Busy},
			{Process: 2, Outcome: history.Granted, Record: "two"},
			{Process: 3, Outcome: history.Replayed, Record: "two"},
		},
		Effects:     []history.Effect{{ID: "charge-1", Lease: "a", Number: 1}, {ID: "charge-2", Lease: "b", Number: 2}},
		Uncommitted: map[int]bool{},
	}
}

// resolved makes it a request that may not run again, and that an operator has freed.
func resolved(q *history.Request) {
	q.Reruns, q.Effects[1].Number = false, 1
	q.Writes = []history.Op{
		{Kind: history.Begin, Lease: "a", Number: 1},
		{Kind: history.Forget},
		{Kind: history.Begin, Lease: "b", Number: 1},
		{Kind: history.Commit, Lease: "b", Record: "two"},
	}
	q.Answers[0].Outcome = history.Interrupted
}

func TestRequestChecksFindEachViolation(t *testing.T) {
	t.Parallel()
	write := func(op history.Op) func(q *history.Request) {
		return func(q *history.Request) { q.Writes = append(q.Writes, op) }
	}
	first := history.Op{Process: 1, Outcome: history.Granted, Record: "one"}
	for name, test := range map[string]struct {
		wrong func(q *history.Request)
		finds string // a part of what is found; "" if nothing
	}{
		"nothing":                                    {func(*history.Request) {}, ""},
		"nothing, after a resolve":                   {resolved, ""},
		"two commits":                                {write(history.Op{Kind: history.Commit, Lease: "b", Record: "two"}), "and then written by a commit"},
		"a deleted record after a commit":            {write(history.Op{Kind: history.Forget}), "and then written by a forget"},
		"a run after a commit":                       {write(history.Op{Kind: history.Begin, Lease: "c", Number: 1}), "and then written by a begin"},
		"a commit of an attempt that was superseded": {func(q *history.Request) { q.Writes[2].Lease = "a" }, "another attempt than the last"},
		"a number that does not rise":                {func(q *history.Request) { q.Writes[1].Number = 1 }, "attempt 1, not 2"},
		"a number that restarts after an abort": {func(q *history.Request) {
			q.Writes[2] = history.Op{Kind: history.Begin, Lease: "aborted:b", Number: 1}
			write(history.Op{Kind: history.Begin, Lease: "c", Number: 1})(q)
		}, "attempt 1, not 2"},
		"a number that does not restart after a resolve": {func(q *history.Request) {
			resolved(q)
			q.Writes[2].Number = 2
		}, "attempt 2, not 1"},
		"a second run that Reject forbids": {func(q *history.Request) { q.Reruns = false }, "was killed"},
		"a replay that differs":            {func(q *history.Request) { q.Answers[2].Record = "one" }, "not a replay"},
		"a replay without a commit":        {func(q *history.Request) { q.Writes = q.Writes[:2] }, "not a replay"},
		"an answer that was not committed": {func(q *history.Request) { q.Answers = append(q.Answers, first) }, "never committed"},
		"an answer of a process that reported a failed commit": {func(q *history.Request) {
			q.Answers, q.Uncommitted[1] = append(q.Answers, first), true
		}, ""},
		"a replay that is not marked":                   {func(q *history.Request) { q.Answers[2].Outcome = history.Granted }, "unmarked"},
		"a charge without an attempt":                   {func(q *history.Request) { q.Effects[0].Lease = "c" }, "never began"},
		"a charge with another number than its attempt": {func(q *history.Request) { q.Effects[1].Number = 1 }, "which has the number"},
		"two charges of one attempt":                    {func(q *history.Request) { q.Effects[0] = q.Effects[1] }, "the second of"},
		"two charges without a resolve": {func(q *history.Request) {
			resolved(q)
			q.Writes = append(q.Writes[:1], q.Writes[2:]...)
		}, "freed 0 times"},
		"a commit without an effect":    {func(q *history.Request) { q.Effects = q.Effects[:1] }, "without an effect"},
		"an unknown outcome with Rerun": {func(q *history.Request) { q.Answers[0].Outcome = history.Interrupted }, "outcome_unknown"},
		"an unknown outcome without an attempt": {func(q *history.Request) {
			*q = history.Request{Answers: []history.Op{{Outcome: history.Interrupted}}}
		}, "outcome_unknown"},
	} {
		q := correct()
		test.wrong(q)
		found := strings.Join(q.Violations(), "; ")
		if (found == "") != (test.finds == "") || !strings.Contains(found, test.finds) {
			t.Errorf("%s: found %q, want %q", name, found, test.finds)
		}
	}
}

package redisstore

import (
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// refers gives the attempt of the request a reference.
func refers(r *storetest.AnyRequest) { r.Attempt.Reference = "mine" }

// referenceTransitions are those of attempts with a reference, or of copies of such an attempt.
var referenceTransitions = testsOf([]transitionRow{
	{name: "begin with a reference", do: begin(refers), first: "granted, number 1", after: "A1 ttl | | R A1 1 r=mine"},
	{name: "begin again with a reference", do: begin(refers), before: "A1 claim | | R A1 4 r=mine @2h", first: "granted, number 4", after: "A1 ttl | | R A1 4 r=mine @2h"},
	{name: "begin after an abort: the reference is replaced", do: begin(refers), before: "| | A B1 r=its @abort", first: "granted, number 1", after: "A1 ttl | | R A1 1 r=mine"},
	{name: "begin without a reference after an abort: no reference stays", do: begin(), before: "| | A B1 r=its @abort", first: "granted, number 1", after: "A1 ttl | | R A1 1"},

	{name: "begin while another with a reference runs", do: begin(withoutJoin, refers), before: "B1 1h | | R B1 1 r=its", first: "by B1, left 1h, running, first its", after: "="},
	{name: "begin a done request with a reference", do: begin(refers), before: "| | D B1 r=its", first: "done, answer, first its", after: "="},
	{name: "begin a done request with a reference, with a grant: it is freed", do: begin(), before: "A1 claim | | D B1 r=its", first: "done, answer, first its", after: "| | D B1 r=its"},
	{name: "begin a sealed request with a reference", do: begin(), before: "| | U B1 r=its", first: "sealed, first its", after: "="},
	{name: "begin with another fingerprint, beside a reference", do: begin(otherFingerprint), before: "B1 1h | | R B1 1 r=its", first: "mismatch, first its", after: "="},
	{name: "begin after an attempt with a reference that died", do: begin(refers), before: "| | R B1 1 r=its", first: "interrupted, unreported B1, first its", after: "="},
	{name: "begin after an attempt with a reference that died and was reported", do: begin(), before: "| | R B1 1 r=its u=1", first: "interrupted, first its", after: "="},
	{name: "rerun after an attempt with a reference that died", do: begin(rerun, refers), before: "| | R B1 2 r=its", first: "granted, number 3, first its", second: "granted, number 3", after: "A1 ttl | | R A1 3 r=mine"},
	{name: "rerun without a reference: no reference stays", do: begin(rerun), before: "| | R B1 2 r=its", first: "granted, number 3, first its", second: "granted, number 3", after: "A1 ttl | | R A1 3"},
	{name: "begin after a rerun that was aborted", do: begin(), before: "| | R aborted:B1 2", first: "interrupted, unreported aborted:B1", after: "="},
	{name: "begin after a text that cannot be a reference", do: begin(), before: "| | D B1 r=\x1b[2J", first: "done, answer", after: "="},

	{name: "commit with a reference", do: finish(store.EndCommit, refers), before: "A1 ttl | | R A1 1 r=mine", first: "freed, stored", second: "stored", after: "| | D A1 r=mine"},
	{name: "commit with a reference, without a record", do: finish(store.EndCommit, refers), before: "A1 ttl", first: "freed, restored", second: "stored", after: "| | D A1 r=mine"},
	{name: "commit after another with a reference has aborted", do: finish(store.EndCommit), before: "| | A B1 r=its @abort", first: "restored", second: "stored", after: "| | D A1"},
	{name: "seal with a reference", do: finish(store.EndDone, refers), before: "A1 ttl | | R A1 1 r=mine", first: "freed, stored", second: "stored", after: "| | U A1 r=mine"},
	{name: "seal with a reference, without a record", do: finish(store.EndDone, refers), before: "A1 ttl", first: "freed, restored", second: "stored", after: "| | U A1 r=mine"},
	{name: "abort a rerun with a reference: it is not that of the attempt that died", do: finish(store.EndAbort, refers), before: "A1 ttl | | R A1 3 r=mine @2h", first: "freed, stored", second: "stored", after: "| | R aborted:A1 2 @2h"},

	{name: "mark an attempt with a reference as done", do: resolveAs(store.ResolveDone, storetest.Bob1), before: "| | R B1 3 r=its", first: "resolved", after: "| | U resolved:B1 r=its"},
	{name: "begin after an operator's answer, beside a reference", do: begin(), before: "| | D resolved:B1 r=its", first: "done, answer, first its", after: "="},
	{name: "begin after an operator has forgotten an attempt with a reference", do: begin(refers), before: "| | A B1 x=B1 r=its @1m", first: "granted, number 1", after: "A1 ttl | | R A1 1 x=B1 r=mine"},
})

// An operator reads the reference, unless it is a text that cannot be one.
func TestReferenceOfARecordIsRead(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s := newStore(t, rdb)
	for state, want := range map[string]string{
		"| | R B1 1 r=its":        "its",
		"B1 ttl | | R B1 1 r=its": "its",
		"| | D B1 r=its":          "its",
		"| | U resolved:B1 r=its": "its",
		"| | R aborted:B1 2":      "",
		"| | D B1":                "",
		"| | D B1 r=\x1b[2J":      "",
	} {
		stateOf(state).Put(t, rdb)
		got, err := s.Outcome(t.Context(), storetest.AnyRequest{Key: "k", Bound: storetest.LongBound})
		if err != nil || got.First != want {
			t.Errorf("%s: %q, %v", state, got.First, err)
		}
	}
}

// Without a reference, a request sends the arguments that it would send if there were none.
func TestReferenceIsSentOnlyIfThereIsOne(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s := newStore(t, rdb)
	for _, load := range []transition{begin(), finish(store.EndAbort)} { // the server loads the scripts
		load.run(t, s)
	}
	sent := &sentCommands{}
	rdb.AddHook(sent)
	for _, changes := range [][]change{nil, {refers}} {
		for _, ending := range []store.Ending{store.EndCommit, store.EndDone, store.EndAbort} {
			rdb.Del(t.Context(), storetest.RecordName)
			begin(changes...).run(t, s)
			finish(ending, changes...).run(t, s)
		}
	}
	sent.forms = slices.DeleteFunc(sent.forms, func(form string) bool { return !strings.HasPrefix(form, "evalsha") })
	want := []string{
		"evalsha 16", "evalsha 15", "evalsha 16", "evalsha 14", "evalsha 16", "evalsha 14",
		"evalsha 17", "evalsha 16", "evalsha 17", "evalsha 16", "evalsha 17", "evalsha 14",
	}
	if !slices.Equal(sent.forms, want) {
		t.Errorf("sent %q, want %q", sent.forms, want)
	}
}

package redisstore

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func attempts(r *storetest.AnyRequest) { r.Attempt = storetest.AttemptRequest("").Attempt }

// begin returns a transition that begins an attempt.
func begin(changes ...change) transition { return asking(append([]change{attempts}, changes...)...) }

// finish returns a transition that ends an attempt.
func finish(ending store.Ending, changes ...change) transition {
	ends := func(r *storetest.AnyRequest) { r.Ending, r.Record = ending, []byte(storetest.Record) }
	return releasing(append([]change{attempts, ends}, changes...)...)
}

func rerun(r *storetest.AnyRequest) { r.Attempt.Rerun = true }

func otherFingerprint(r *storetest.AnyRequest) { r.Attempt.Fingerprint = []byte("another") }

func runningRecord(token, number string) hash {
	return hash{"s": "R", "t": token, "f": "print", "n": number}
}

// attemptTransitions are the transitions of attempts. What they do with the queue is tested with
// the other transitions.
var attemptTransitions = slices.Concat(attemptBegins, attemptEndings, referenceTransitions)

var attemptBegins = testsOf([]transitionRow{
	{name: "begin the first attempt", do: begin(), first: "granted, number 1", after: "A1 ttl | | R A1 1"},
	{name: "begin confirms a hand-off: the full TTL", do: begin(), listening: "B", before: "A1 claim | B1", first: "granted, waiting 1, number 1", after: "A1 ttl | B1 | R A1 1"},
	{name: "begin again: the TTL of the record stays", do: begin(), before: "A1 claim | | R A1 4 @2h", first: "granted, number 4", after: "A1 ttl | | R A1 4 @2h"},
	{name: "begin after an abort, with another fingerprint", do: begin(otherFingerprint), before: "| | A B1 @abort", first: "granted, number 1", after: "A1 ttl | | R A1 1 f=another"},
	{name: "late begin after its own abort: the key is released", do: beginAborted, listening: "B", before: "A1 ttl | A1 B1 | A A1 @abort", first: "nothing", after: "B1 claim | | A A1 @abort", hints: "B1"},
	{name: "late begin after its own abort: a free key is not taken", do: beginAborted, before: "| | A A1 @abort", first: "nothing", after: "="},

	{name: "begin while another runs", do: begin(), listening: "B", before: "B1 1h | | R B1 1", first: "by B1, left 1h, running", after: "B1 1h | A1 | R B1 1", hints: "B1 B1"},
	{name: "begin while another runs, without joining", do: begin(withoutJoin), before: "B1 1h | | R B1 1", first: "by B1, left 1h, running", after: "="},
	{name: "begin behind a lock without an attempt", do: begin(), before: "other! 1h", first: "by other!, left 1h, foreign", after: "other! 1h | A1"},
	{name: "begin behind a waiter that listens", do: begin(), listening: "B", before: "| B1", first: "by B1, left claim", after: "B1 claim | A1", hints: "B1 B1"},
	{name: "begin after the lock was lost: the own attempt still runs", do: begin(withoutJoin), before: "B1 1h | | R A1 1", first: "by B1, left 1h, running", after: "="},

	{name: "begin a done request: its answer", do: begin(), before: "| | D B1", first: "done, answer", after: "="},
	{name: "begin a done request with an empty answer", do: begin(), before: "| | D B1 p=", first: "done", after: "="},
	{name: "begin a done request, with a grant: it is passed on", do: begin(), listening: "C", before: "A1 claim | B1 A1 C1 | D B1", first: "done, answer", after: "C1 claim | | D B1", hints: "C1"},
	{name: "begin a done request, with a grant and without waiters: it is freed", do: begin(), before: "A1 claim | | D B1", first: "done, answer", after: "| | D B1"},
	{name: "begin a done request, while another holds the key: leaves the queue", do: begin(rerun), before: "other! 1h | C1 A1 | D B1", first: "done, answer", after: "other! 1h | C1 | D B1"},
	{name: "begin a sealed request", do: begin(), before: "A1 claim | | U B1", first: "sealed", after: "| | U B1"},
	{name: "begin with another fingerprint, while an attempt runs", do: begin(otherFingerprint, rerun), before: "B1 1h | C1 A1 | R B1 1", first: "mismatch", after: "B1 1h | C1 | R B1 1"},
	{name: "begin with another fingerprint, after an attempt that died", do: begin(otherFingerprint), before: "A1 claim | | R B1 1", first: "mismatch", after: "| | R B1 1"},
	{name: "begin with another fingerprint, after a done request", do: begin(otherFingerprint), before: "| | D B1", first: "mismatch", after: "="},
	{name: "begin with another fingerprint, after a sealed request", do: begin(otherFingerprint), before: "| | U B1", first: "mismatch", after: "="},

	{name: "begin after an attempt that died", do: begin(), before: "| | R B1 1", first: "interrupted, unreported B1", after: "="},
	{name: "begin after an attempt that died, with a grant: it is passed on", do: begin(), listening: "C", before: "A1 claim | C1 | R B1 1", first: "interrupted, unreported B1", after: "C1 claim | | R B1 1", hints: "C1"},
	{name: "begin after an attempt that died, while another has a grant", do: begin(), before: "C1 claim | A1 | R B1 1", first: "interrupted, unreported B1", after: "C1 claim | | R B1 1"},
	{name: "rerun after an attempt that died: counted", do: begin(rerun), before: "| | R B1 2 @1m", first: "granted, number 3", after: "A1 ttl | | R A1 3"},
	{name: "rerun after an attempt that died, while another has a grant", do: begin(rerun, withoutJoin), before: "C1 claim | | R B1 1", first: "by C1, left claim, running", after: "="},

	{name: "enqueue without an attempt: the record stays", do: enqueue, before: "| | R B1 1", first: "granted", after: "A1 ttl | | R B1 1"},
	{name: "release without an attempt: the record stays", do: release, before: "A1 ttl | | R A1 1", first: "freed", second: "nothing", after: "| | R A1 1"},

	{name: "renew raises the TTL of the record", do: renewAttempt, before: "A1 claim | | R A1 1 @1m", first: "granted", after: "A1 ttl | | R A1 1"},
	{name: "renew never shortens the TTL of the record", do: renewAttempt, before: "A1 claim | | R A1 1 @2h", first: "granted", after: "A1 ttl | | R A1 1 @2h"},
	{name: "renew beside the record of another", do: renewAttempt, before: "A1 claim | | R B1 1 @1m", first: "granted", after: "A1 ttl | | R B1 1 @1m"},
	{name: "renew without a record: creates none", do: renewAttempt, before: "A1 claim", first: "granted", after: "A1 ttl"},
	{name: "renew another's key: the record stays", do: renewAttempt, before: "B1 ttl | | R A1 1 @1m", first: "nothing", after: "="},
})

// renewAttempt renews the key of an attempt.
var renewAttempt = renewing(attempts)

// beginAborted begins an attempt that was aborted before. Its reply is no answer, because no
// caller waits for one.
func beginAborted(t *testing.T, s *syncStore) (outcome, error) {
	t.Helper()
	got, err := s.Enqueue(t.Context(), storetest.AttemptRequest(storetest.Me1))
	var odd *command.UnexpectedReplyError
	if !errors.As(err, &odd) || got.Granted {
		t.Errorf("%+v, %v", got, err)
	}
	return outcome{}, nil
}

var attemptEndings = testsOf([]transitionRow{
	{name: "commit", do: finish(store.EndCommit), before: "A1 ttl | | R A1 3 @1m", first: "freed, stored", second: "stored", after: "| | D A1"},
	{
		name: "commit, and hand over to the first waiter that listens", do: finish(store.EndCommit), listening: "C",
		before: "A1 ttl | A1 B1 C1 B2 | R A1 1", first: "handed, stored", second: "stored", after: "C1 claim | B2 | D A1", hints: "C1",
	},
	{name: "commit in mode B: to a waiter that cannot be counted", do: inModeB(finish(store.EndCommit)), before: "A1 ttl | B1 | R A1 1", first: "handed, stored", second: "stored", after: "B1 claim | | D A1"},
	{name: "commit after the key was lost, without another attempt", do: finish(store.EndCommit), before: "B1 ttl | C1 | R A1 1", first: "stored", after: "B1 ttl | C1 | D A1"},
	{name: "commit after the key was lost, while another runs", do: finish(store.EndCommit), before: "B1 ttl | | R B1 1", first: "nothing", after: "="},
	{name: "commit after the key was lost, after another commit", do: finish(store.EndCommit), before: "| | D B1", first: "nothing", after: "="},
	{name: "commit after the seal of another", do: finish(store.EndCommit), before: "| | U B1", first: "nothing", after: "="},
	{name: "commit with the key, and the record of another", do: finish(store.EndCommit), before: "A1 ttl | | R B1 1", first: "freed", second: "nothing", after: "| | R B1 1"},
	{name: "commit without a record", do: finish(store.EndCommit), listening: "B", before: "A1 ttl | B1", first: "handed, restored", second: "stored", after: "B1 claim | | D A1", hints: "B1"},
	{name: "commit without a record and without the key", do: finish(store.EndCommit), first: "restored", second: "stored", after: "| | D A1"},
	{name: "commit without a record, while another holds the key", do: finish(store.EndCommit), before: "B1 ttl", first: "nothing", after: "="},
	{name: "commit after another has begun and aborted", do: finish(store.EndCommit), before: "| | A B1 @abort", first: "restored", second: "stored", after: "| | D A1"},
	{name: "commit after the own abort", do: finish(store.EndCommit), before: "| | A A1 @abort", first: "nothing", after: "="},
	{name: "seal", do: finish(store.EndDone), before: "A1 ttl | | R A1 1 @1m", first: "freed, stored", second: "stored", after: "| | U A1"},
	{name: "seal without a record", do: finish(store.EndDone), before: "A1 ttl", first: "freed, restored", second: "stored", after: "| | U A1"},
	{name: "seal after the own commit: the answer stays", do: finish(store.EndDone), before: "| | D A1", first: "stored", after: "="},

	{name: "abort", do: finish(store.EndAbort), listening: "B", before: "A1 ttl | B1 | R A1 1", first: "handed, stored", second: "stored", after: "B1 claim | | A A1 @abort", hints: "B1"},
	{name: "abort after an attempt that died: the death stays", do: finish(store.EndAbort), before: "A1 ttl | | R A1 3 @2h", first: "freed, stored", second: "stored", after: "| | R aborted:A1 2 @2h"},
	{name: "commit after the own abort, after an attempt that died", do: finish(store.EndCommit), before: "A1 ttl | | R aborted:A1 2", first: "freed", second: "nothing", after: "| | R aborted:A1 2"},
	{name: "late begin after its own abort, after an attempt that died: the key is released", do: beginAborted, before: "A1 ttl | | R aborted:A1 2", first: "nothing", after: "| | R aborted:A1 2"},
	{name: "begin after an abort, after an attempt that died", do: begin(), before: "| | R aborted:B1 2", first: "interrupted, unreported aborted:B1", after: "="},
	{name: "rerun after an abort, after an attempt that died: the death counts", do: begin(rerun), before: "| | R aborted:B1 2", first: "granted, number 3", after: "A1 ttl | | R A1 3"},
	{name: "abort before its begin", do: finish(store.EndAbort), before: "B1 ttl | C1 A1", first: "stored", after: "B1 ttl | C1 | A A1 @abort"},
	{name: "abort after the abort of another", do: finish(store.EndAbort), before: "| | A B1 @20s", first: "stored", after: "| | A A1 @abort"},
	{name: "abort while another runs: the record stays", do: finish(store.EndAbort), before: "B1 ttl | A1 | R B1 1", first: "nothing", after: "B1 ttl | | R B1 1"},
	{name: "abort a grant after the commit of another", do: finish(store.EndAbort), before: "A1 claim | | D B1", first: "freed", second: "nothing", after: "| | D B1"},
	{name: "abort after the own commit: the answer stays", do: finish(store.EndAbort), before: "A1 ttl | | D A1", first: "freed", second: "nothing", after: "| | D A1"},
	{name: "abort after the own seal: the seal stays", do: finish(store.EndAbort), before: "| | U A1", first: "nothing", after: "="},
})

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

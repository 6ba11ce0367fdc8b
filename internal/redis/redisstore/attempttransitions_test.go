package redisstore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// begin returns a transition that begins an attempt.
func begin(change ...func(*storetest.AnyRequest)) transition {
	return func(t *testing.T, s *syncStore) outcome {
		t.Helper()
		r := storetest.AttemptRequest(storetest.Me1)
		for _, change := range change {
			change(&r)
		}
		asked := time.Now()
		got, err := s.Enqueue(t.Context(), r)
		return outcomeOf(t, asked, got, err)
	}
}

func rerun(r *storetest.AnyRequest) { r.Attempt.Rerun = true }

func otherFingerprint(r *storetest.AnyRequest) { r.Attempt.Fingerprint = []byte("another") }

func withoutJoin(r *storetest.AnyRequest) { r.Join = false }

// interrupted is the answer to a begin after this attempt died, if that was not reported yet.
func interrupted(token string) outcome {
	return outcome{verdict: store.Interrupted, unreported: nameOf(token)}
}

func runningRecord(token, number string) hash {
	return hash{"s": "R", "t": token, "f": "print", "n": number}
}

func doneRecord(token string) hash {
	return hash{"s": "D", "t": token, "f": "print", "p": storetest.Record}
}

func sealedRecord(token string) hash { return hash{"s": "U", "t": token, "f": "print"} }

func abortedRecord(token string) hash { return hash{"s": "A", "t": token, "f": "print"} }

// attemptTransitions are the transitions of attempts. What they do with the queue is tested with
// the other transitions.
var attemptTransitions = slices.Concat(attemptBegins, attemptEndings)

var attemptBegins = []transitionTest{
	{
		name: "begin the first attempt", do: begin(),
		first: outcome{granted: true, number: 1}, second: outcome{granted: true, number: 1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1")},
	},
	{
		name: "begin confirms a hand-off: the full TTL", do: begin(), listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
		first:  outcome{granted: true, waiting: 1, number: 1}, second: outcome{granted: true, waiting: 1, number: 1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runningRecord(storetest.Me1, "1")},
	},
	{
		name: "begin again: the TTL of the record stays", do: begin(),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: runningRecord(storetest.Me1, "4"), RecordTTL: 2 * storetest.Keep},
		first:  outcome{granted: true, number: 4}, second: outcome{granted: true, number: 4},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "4"), RecordTTL: 2 * storetest.Keep},
	},
	{
		name: "begin after an abort, with another fingerprint", do: begin(otherFingerprint),
		before: storetest.State{Record: abortedRecord(storetest.Bob1), RecordTTL: abortTTL},
		first:  outcome{granted: true, number: 1}, second: outcome{granted: true, number: 1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: hash{"s": "R", "t": storetest.Me1, "f": "another", "n": "1"}},
	},
	{
		name: "late begin after its own abort: the key is released", do: beginAborted, listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Me1, storetest.Bob1}, Record: abortedRecord(storetest.Me1), RecordTTL: abortTTL},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: abortedRecord(storetest.Me1), RecordTTL: abortTTL},
		hints:  []string{storetest.Bob1 + " p:k"},
	},
	{
		name: "late begin after its own abort: a free key is not taken", do: beginAborted,
		before: storetest.State{Record: abortedRecord(storetest.Me1), RecordTTL: abortTTL},
		after:  storetest.State{Record: abortedRecord(storetest.Me1), RecordTTL: abortTTL},
	},

	{
		name: "begin while another runs", do: begin(), listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runningRecord(storetest.Bob1, "1")},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour, running: true},
		second: outcome{holder: storetest.Bob1, remaining: time.Hour, running: true},
		after:  storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Me1}, Record: runningRecord(storetest.Bob1, "1")},
		hints:  []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "begin while another runs, without joining", do: begin(withoutJoin),
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runningRecord(storetest.Bob1, "1")},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour, running: true},
		second: outcome{holder: storetest.Bob1, remaining: time.Hour, running: true},
		after:  storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runningRecord(storetest.Bob1, "1")},
	},
	{
		name: "begin behind a lock without an attempt", do: begin(),
		before: storetest.State{Value: "other", TTL: time.Hour},
		first:  outcome{holder: "other", remaining: time.Hour, foreign: true},
		second: outcome{holder: "other", remaining: time.Hour, foreign: true},
		after:  storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Me1}},
	},
	{
		name: "begin behind a waiter that listens", do: begin(), listening: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Bob1}},
		first:  outcome{holder: storetest.Bob1, remaining: storetest.Claim}, second: outcome{holder: storetest.Bob1, remaining: storetest.Claim},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Me1}},
		hints: []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "begin after the lock was lost: the own attempt still runs", do: begin(withoutJoin),
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runningRecord(storetest.Me1, "1")},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour, running: true},
		second: outcome{holder: storetest.Bob1, remaining: time.Hour, running: true},
		after:  storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runningRecord(storetest.Me1, "1")},
	},

	{
		name: "begin a done request: its answer", do: begin(),
		before: storetest.State{Record: doneRecord(storetest.Bob1)},
		first:  outcome{verdict: store.Done, record: storetest.Record},
		second: outcome{verdict: store.Done, record: storetest.Record},
		after:  storetest.State{Record: doneRecord(storetest.Bob1)},
	},
	{
		name: "begin a done request with an empty answer", do: begin(),
		before: storetest.State{Record: hash{"s": "D", "t": storetest.Bob1, "f": "print", "p": ""}},
		first:  outcome{verdict: store.Done}, second: outcome{verdict: store.Done},
		after: storetest.State{Record: hash{"s": "D", "t": storetest.Bob1, "f": "print", "p": ""}},
	},
	{
		name: "begin a done request, with a grant: it is passed on", do: begin(), listening: []string{storetest.Eve},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1, storetest.Me1, storetest.Eve1}, Record: doneRecord(storetest.Bob1)},
		first:  outcome{verdict: store.Done, record: storetest.Record},
		second: outcome{verdict: store.Done, record: storetest.Record},
		after:  storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Record: doneRecord(storetest.Bob1)},
		hints:  []string{storetest.Eve1 + " p:k"},
	},
	{
		name: "begin a done request, with a grant and without waiters: it is freed", do: begin(),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: doneRecord(storetest.Bob1)},
		first:  outcome{verdict: store.Done, record: storetest.Record},
		second: outcome{verdict: store.Done, record: storetest.Record},
		after:  storetest.State{Record: doneRecord(storetest.Bob1)},
	},
	{
		name: "begin a done request, while another holds the key: leaves the queue", do: begin(rerun),
		before: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me1}, Record: doneRecord(storetest.Bob1)},
		first:  outcome{verdict: store.Done, record: storetest.Record},
		second: outcome{verdict: store.Done, record: storetest.Record},
		after:  storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1}, Record: doneRecord(storetest.Bob1)},
	},
	{
		name: "begin a sealed request", do: begin(),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: sealedRecord(storetest.Bob1)},
		first:  outcome{verdict: store.Sealed}, second: outcome{verdict: store.Sealed},
		after: storetest.State{Record: sealedRecord(storetest.Bob1)},
	},
	{
		name: "begin with another fingerprint, while an attempt runs", do: begin(otherFingerprint, rerun),
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me1}, Record: runningRecord(storetest.Bob1, "1")},
		first:  outcome{verdict: store.Mismatch}, second: outcome{verdict: store.Mismatch},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1}, Record: runningRecord(storetest.Bob1, "1")},
	},
	{
		name: "begin with another fingerprint, after an attempt that died", do: begin(otherFingerprint),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: runningRecord(storetest.Bob1, "1")},
		first:  outcome{verdict: store.Mismatch}, second: outcome{verdict: store.Mismatch},
		after: storetest.State{Record: runningRecord(storetest.Bob1, "1")},
	},
	{
		name: "begin with another fingerprint, after a done request", do: begin(otherFingerprint),
		before: storetest.State{Record: doneRecord(storetest.Bob1)},
		first:  outcome{verdict: store.Mismatch}, second: outcome{verdict: store.Mismatch},
		after: storetest.State{Record: doneRecord(storetest.Bob1)},
	},
	{
		name: "begin with another fingerprint, after a sealed request", do: begin(otherFingerprint),
		before: storetest.State{Record: sealedRecord(storetest.Bob1)},
		first:  outcome{verdict: store.Mismatch}, second: outcome{verdict: store.Mismatch},
		after: storetest.State{Record: sealedRecord(storetest.Bob1)},
	},

	{
		name: "begin after an attempt that died", do: begin(),
		before: storetest.State{Record: runningRecord(storetest.Bob1, "1")},
		first:  interrupted(storetest.Bob1), second: interrupted(storetest.Bob1),
		after: storetest.State{Record: runningRecord(storetest.Bob1, "1")},
	},
	{
		name: "begin after an attempt that died, with a grant: it is passed on", do: begin(), listening: []string{storetest.Eve},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Eve1}, Record: runningRecord(storetest.Bob1, "1")},
		first:  interrupted(storetest.Bob1), second: interrupted(storetest.Bob1),
		after: storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Record: runningRecord(storetest.Bob1, "1")},
		hints: []string{storetest.Eve1 + " p:k"},
	},
	{
		name: "begin after an attempt that died, while another has a grant", do: begin(),
		before: storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Queue: []string{storetest.Me1}, Record: runningRecord(storetest.Bob1, "1")},
		first:  interrupted(storetest.Bob1), second: interrupted(storetest.Bob1),
		after: storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Record: runningRecord(storetest.Bob1, "1")},
	},
	{
		name: "rerun after an attempt that died: counted", do: begin(rerun),
		before: storetest.State{Record: runningRecord(storetest.Bob1, "2"), RecordTTL: time.Minute},
		first:  outcome{granted: true, number: 3}, second: outcome{granted: true, number: 3},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "3")},
	},
	{
		name: "rerun after an attempt that died: no answer stays", do: begin(rerun),
		before: storetest.State{Record: hash{"s": "R", "t": storetest.Bob1, "f": "print", "n": "1", "p": "old"}},
		first:  outcome{granted: true, number: 2}, second: outcome{granted: true, number: 2},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "2")},
	},
	{
		name: "rerun after an attempt that died, while another has a grant", do: begin(rerun, withoutJoin),
		before: storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Record: runningRecord(storetest.Bob1, "1")},
		first:  outcome{holder: storetest.Eve1, remaining: storetest.Claim, running: true},
		second: outcome{holder: storetest.Eve1, remaining: storetest.Claim, running: true},
		after:  storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Record: runningRecord(storetest.Bob1, "1")},
	},

	{
		name: "enqueue without an attempt: the record stays", do: enqueue,
		before: storetest.State{Record: runningRecord(storetest.Bob1, "1")},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Bob1, "1")},
	},
	{
		name: "release without an attempt: the record stays", do: release,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1")},
		first:  outcome{status: store.Freed}, second: outcome{status: store.NotHeld},
		after: storetest.State{Record: runningRecord(storetest.Me1, "1")},
	},

	{
		name: "renew raises the TTL of the record", do: renewAttempt,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: runningRecord(storetest.Me1, "1"), RecordTTL: time.Minute},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1")},
	},
	{
		name: "renew never shortens the TTL of the record", do: renewAttempt,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: runningRecord(storetest.Me1, "1"), RecordTTL: 2 * storetest.Keep},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1"), RecordTTL: 2 * storetest.Keep},
	},
	{
		name: "renew beside the record of another", do: renewAttempt,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: runningRecord(storetest.Bob1, "1"), RecordTTL: time.Minute},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Bob1, "1"), RecordTTL: time.Minute},
	},
	{
		name: "renew without a record: creates none", do: renewAttempt,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim}, after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
		first: outcome{granted: true}, second: outcome{granted: true},
	},
	{
		name: "renew another's key: the record stays", do: renewAttempt,
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1"), RecordTTL: time.Minute},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1"), RecordTTL: time.Minute},
	},
}

// renewAttempt renews the key of an attempt.
func renewAttempt(t *testing.T, s *syncStore) outcome {
	t.Helper()
	asked := time.Now()
	got, err := s.Renew(t.Context(), storetest.AttemptRequest(storetest.Me1))
	if err != nil {
		t.Fatal(err)
	}
	checkSince(t, got.Since, asked)
	return outcome{granted: got.Held, waiting: got.Waiting}
}

// beginAborted begins an attempt that was aborted before. Its reply is no answer, because no
// caller waits for one.
func beginAborted(t *testing.T, s *syncStore) outcome {
	t.Helper()
	got, err := s.Enqueue(t.Context(), storetest.AttemptRequest(storetest.Me1))
	var odd *command.UnexpectedReplyError
	if !errors.As(err, &odd) || got.Granted {
		t.Errorf("%+v, %v", got, err)
	}
	return outcome{}
}

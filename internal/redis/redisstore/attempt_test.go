package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// begin asks as an attempt.
func begin(change ...func(*storetest.AnyRequest)) transition {
	return func(t *testing.T, s *syncStore) outcome {
		t.Helper()
		r := storetest.AttemptRequest(storetest.Me1)
		for _, change := range change {
			change(&r)
		}
		asked := time.Now()
		got, err := s.Enqueue(t.Context(), r)
		return answered(t, asked, got, err)
	}
}

func rerun(r *storetest.AnyRequest)   { r.Attempt.Rerun = true }
func another(r *storetest.AnyRequest) { r.Attempt.Fingerprint = []byte("another") }
func aside(r *storetest.AnyRequest)   { r.Join = false }

// finish ends an attempt.
func finish(ending store.Ending) transition {
	return func(t *testing.T, s *syncStore) outcome {
		t.Helper()
		r := storetest.AttemptRequest(storetest.Me1)
		r.Ending = ending
		if ending == store.Commit {
			r.Record = []byte(storetest.Record)
		}
		got, err := s.Release(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return outcome{end: got.Status, stored: got.Record}
	}
}

func resolve(t *testing.T, s *syncStore) outcome {
	t.Helper()
	running, err := s.Resolve(t.Context(), storetest.AnyRequest{Key: "k", Bound: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return outcome{running: running}
}

func runs(token, number string) hash {
	return hash{"s": "R", "t": token, "f": "print", "n": number}
}

func done(token string) hash {
	return hash{"s": "D", "t": token, "f": "print", "p": storetest.Record}
}
func sealed(token string) hash  { return hash{"s": "U", "t": token, "f": "print"} }
func aborted(token string) hash { return hash{"s": "A", "t": token, "f": "print"} }

// ofAttempts are the transitions of attempts. Those of the line are the same as
// for other requests.
var ofAttempts = []transitionTest{
	{
		name: "begin the first attempt", do: begin(),
		first: outcome{granted: true, number: 1}, second: outcome{granted: true, number: 1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1")},
	},
	{
		name: "begin when a grant is confirmed: a full life", do: begin(), hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
		first:  outcome{granted: true, line: 1, number: 1}, second: outcome{granted: true, line: 1, number: 1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runs(storetest.Me1, "1")},
	},
	{
		name: "begin again in a lease that is shorter: the record's life is not touched", do: begin(),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: runs(storetest.Me1, "4"), RecordTTL: 2 * storetest.Keep},
		first:  outcome{granted: true, number: 4}, second: outcome{granted: true, number: 4},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "4"), RecordTTL: 2 * storetest.Keep},
	},
	{
		name: "begin after an abort: that is no record, whatever its request", do: begin(another),
		before: storetest.State{Record: aborted(storetest.Bob1), RecordTTL: abortTTL},
		first:  outcome{granted: true, number: 1}, second: outcome{granted: true, number: 1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: hash{"s": "R", "t": storetest.Me1, "f": "another", "n": "1"}},
	},
	{
		name: "begin late, after its own abort: it is gone, and the key too", do: gone, hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Me1, storetest.Bob1}, Record: aborted(storetest.Me1), RecordTTL: abortTTL},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: aborted(storetest.Me1), RecordTTL: abortTTL},
		said:   []string{storetest.Bob1 + " p:k"},
	},
	{
		name: "begin late, after its own abort, a free key: not taken", do: gone,
		before: storetest.State{Record: aborted(storetest.Me1), RecordTTL: abortTTL},
		after:  storetest.State{Record: aborted(storetest.Me1), RecordTTL: abortTTL},
	},

	{
		name: "begin while another runs: busy", do: begin(), hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runs(storetest.Bob1, "1")},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour, running: true},
		second: outcome{holder: storetest.Bob1, remaining: time.Hour, running: true},
		after:  storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Me1}, Record: runs(storetest.Bob1, "1")},
		said:   []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "begin while another runs, and not wait", do: begin(aside),
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runs(storetest.Bob1, "1")},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour, running: true},
		second: outcome{holder: storetest.Bob1, remaining: time.Hour, running: true},
		after:  storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runs(storetest.Bob1, "1")},
	},
	{
		name: "begin behind a lock that is no attempt's", do: begin(),
		before: storetest.State{Value: "other", TTL: time.Hour},
		first:  outcome{holder: "other", remaining: time.Hour, silent: true},
		second: outcome{holder: "other", remaining: time.Hour, silent: true},
		after:  storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Me1}},
	},
	{
		name: "begin behind a living line", do: begin(), hears: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Bob1}},
		first:  outcome{holder: storetest.Bob1, remaining: storetest.Claim}, second: outcome{holder: storetest.Bob1, remaining: storetest.Claim},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Me1}},
		said:  []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "begin in a key that was lost to another: ours is the attempt that runs", do: begin(aside),
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runs(storetest.Me1, "1")},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour, running: true},
		second: outcome{holder: storetest.Bob1, remaining: time.Hour, running: true},
		after:  storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runs(storetest.Me1, "1")},
	},

	{
		name: "begin what is done: its answer", do: begin(),
		before: storetest.State{Record: done(storetest.Bob1)},
		first:  outcome{verdict: store.Done, record: storetest.Record},
		second: outcome{verdict: store.Done, record: storetest.Record},
		after:  storetest.State{Record: done(storetest.Bob1)},
	},
	{
		name: "begin what is done, with an empty answer", do: begin(),
		before: storetest.State{Record: hash{"s": "D", "t": storetest.Bob1, "f": "print", "p": ""}},
		first:  outcome{verdict: store.Done}, second: outcome{verdict: store.Done},
		after: storetest.State{Record: hash{"s": "D", "t": storetest.Bob1, "f": "print", "p": ""}},
	},
	{
		name: "begin what is done, with a grant: it is passed on", do: begin(), hears: []string{storetest.Eve},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1, storetest.Me1, storetest.Eve1}, Record: done(storetest.Bob1)},
		first:  outcome{verdict: store.Done, record: storetest.Record},
		second: outcome{verdict: store.Done, record: storetest.Record},
		after:  storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Record: done(storetest.Bob1)},
		said:   []string{storetest.Eve1 + " p:k"},
	},
	{
		name: "begin what is done, with a grant and alone: it is freed", do: begin(),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: done(storetest.Bob1)},
		first:  outcome{verdict: store.Done, record: storetest.Record},
		second: outcome{verdict: store.Done, record: storetest.Record},
		after:  storetest.State{Record: done(storetest.Bob1)},
	},
	{
		name: "begin what is done, while another holds the key: out of the line", do: begin(rerun),
		before: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me1}, Record: done(storetest.Bob1)},
		first:  outcome{verdict: store.Done, record: storetest.Record},
		second: outcome{verdict: store.Done, record: storetest.Record},
		after:  storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1}, Record: done(storetest.Bob1)},
	},
	{
		name: "begin what is sealed", do: begin(),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: sealed(storetest.Bob1)},
		first:  outcome{verdict: store.Sealed}, second: outcome{verdict: store.Sealed},
		after: storetest.State{Record: sealed(storetest.Bob1)},
	},
	{
		name: "begin another request, while one runs: mismatch before busy", do: begin(another, rerun),
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me1}, Record: runs(storetest.Bob1, "1")},
		first:  outcome{verdict: store.Mismatch}, second: outcome{verdict: store.Mismatch},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1}, Record: runs(storetest.Bob1, "1")},
	},
	{
		name: "begin another request, after one that died", do: begin(another),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: runs(storetest.Bob1, "1")},
		first:  outcome{verdict: store.Mismatch}, second: outcome{verdict: store.Mismatch},
		after: storetest.State{Record: runs(storetest.Bob1, "1")},
	},
	{
		name: "begin another request, after one that is done", do: begin(another),
		before: storetest.State{Record: done(storetest.Bob1)},
		first:  outcome{verdict: store.Mismatch}, second: outcome{verdict: store.Mismatch},
		after: storetest.State{Record: done(storetest.Bob1)},
	},
	{
		name: "begin another request, after one that is sealed", do: begin(another),
		before: storetest.State{Record: sealed(storetest.Bob1)},
		first:  outcome{verdict: store.Mismatch}, second: outcome{verdict: store.Mismatch},
		after: storetest.State{Record: sealed(storetest.Bob1)},
	},

	{
		name: "begin after one that died", do: begin(),
		before: storetest.State{Record: runs(storetest.Bob1, "1")},
		first:  outcome{verdict: store.Interrupted}, second: outcome{verdict: store.Interrupted},
		after: storetest.State{Record: runs(storetest.Bob1, "1")},
	},
	{
		name: "begin after one that died, with a grant: it is passed on", do: begin(), hears: []string{storetest.Eve},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Eve1}, Record: runs(storetest.Bob1, "1")},
		first:  outcome{verdict: store.Interrupted}, second: outcome{verdict: store.Interrupted},
		after: storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Record: runs(storetest.Bob1, "1")},
		said:  []string{storetest.Eve1 + " p:k"},
	},
	{
		name: "begin after one that died, while another has a grant", do: begin(),
		before: storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Queue: []string{storetest.Me1}, Record: runs(storetest.Bob1, "1")},
		first:  outcome{verdict: store.Interrupted}, second: outcome{verdict: store.Interrupted},
		after: storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Record: runs(storetest.Bob1, "1")},
	},
	{
		name: "begin anew after one that died: counted", do: begin(rerun),
		before: storetest.State{Record: runs(storetest.Bob1, "2"), RecordTTL: time.Minute},
		first:  outcome{granted: true, number: 3}, second: outcome{granted: true, number: 3},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "3")},
	},
	{
		name: "begin anew after one that died: no answer stays", do: begin(rerun),
		before: storetest.State{Record: hash{"s": "R", "t": storetest.Bob1, "f": "print", "n": "1", "p": "old"}},
		first:  outcome{granted: true, number: 2}, second: outcome{granted: true, number: 2},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "2")},
	},
	{
		name: "begin anew after one that died, while another has a grant: busy", do: begin(rerun, aside),
		before: storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Record: runs(storetest.Bob1, "1")},
		first:  outcome{holder: storetest.Eve1, remaining: storetest.Claim, running: true},
		second: outcome{holder: storetest.Eve1, remaining: storetest.Claim, running: true},
		after:  storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Record: runs(storetest.Bob1, "1")},
	},

	{
		name: "enqueue without an attempt: the record is left alone", do: enqueue,
		before: storetest.State{Record: runs(storetest.Bob1, "1")},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Bob1, "1")},
	},
	{
		name: "release without an attempt: its outcome stays unknown", do: release,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1")},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
		after: storetest.State{Record: runs(storetest.Me1, "1")},
	},

	{
		name: "commit", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "3"), RecordTTL: time.Minute},
		first:  outcome{end: store.Freed, stored: store.WasStored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Record: done(storetest.Me1)},
	},
	{
		name: "commit, and hand over to the first that listens", do: finish(store.Commit), hears: []string{storetest.Eve},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Me1, storetest.Bob1, storetest.Eve1, storetest.Bob2}, Record: runs(storetest.Me1, "1")},
		first:  outcome{end: store.Handed, stored: store.WasStored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Queue: []string{storetest.Bob2}, Record: done(storetest.Me1)},
		said:   []string{storetest.Eve1 + " p:k"},
	},
	{
		name: "commit in a cluster: to who cannot be counted", do: inCluster(finish(store.Commit)),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runs(storetest.Me1, "1")},
		first:  outcome{end: store.Handed, stored: store.WasStored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: done(storetest.Me1)},
	},
	{
		name: "commit after the key was lost, when nobody began since", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}, Record: runs(storetest.Me1, "1")},
		first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}, Record: done(storetest.Me1)},
	},
	{
		name: "commit after the key was lost, when another runs", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: runs(storetest.Bob1, "1")},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: runs(storetest.Bob1, "1")},
	},
	{
		name: "commit after the key was lost, when another is done", do: finish(store.Commit),
		before: storetest.State{Record: done(storetest.Bob1)},
		after:  storetest.State{Record: done(storetest.Bob1)},
	},
	{
		name: "commit when another is sealed", do: finish(store.Commit),
		before: storetest.State{Record: sealed(storetest.Bob1)},
		after:  storetest.State{Record: sealed(storetest.Bob1)},
	},
	{
		name: "commit with the key, when the record is another's", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Bob1, "1")},
		first:  outcome{end: store.Freed},
		after:  storetest.State{Record: runs(storetest.Bob1, "1")},
	},
	{
		name: "commit when the record is gone", do: finish(store.Commit), hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
		first:  outcome{end: store.Handed, stored: store.Restored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: done(storetest.Me1)},
		said:   []string{storetest.Bob1 + " p:k"},
	},
	{
		name: "commit when the record and the key are gone", do: finish(store.Commit),
		first:  outcome{stored: store.Restored},
		second: outcome{stored: store.WasStored},
		after:  storetest.State{Record: done(storetest.Me1)},
	},
	{
		name: "commit when the record is gone, and another holds the key", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL},
	},
	{
		name: "commit after another has begun and aborted", do: finish(store.Commit),
		before: storetest.State{Record: aborted(storetest.Bob1), RecordTTL: abortTTL},
		first:  outcome{stored: store.Restored}, second: outcome{stored: store.WasStored},
		after: storetest.State{Record: done(storetest.Me1)},
	},
	{
		name: "commit after an abort of our own: never", do: finish(store.Commit),
		before: storetest.State{Record: aborted(storetest.Me1), RecordTTL: abortTTL},
		after:  storetest.State{Record: aborted(storetest.Me1), RecordTTL: abortTTL},
	},
	{
		name: "seal", do: finish(store.Seal),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1"), RecordTTL: time.Minute},
		first:  outcome{end: store.Freed, stored: store.WasStored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Record: sealed(storetest.Me1)},
	},
	{
		name: "seal when the record is gone", do: finish(store.Seal),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
		first:  outcome{end: store.Freed, stored: store.Restored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Record: sealed(storetest.Me1)},
	},
	{
		name: "seal after a commit of our own: its answer stays", do: finish(store.Seal),
		before: storetest.State{Record: done(storetest.Me1)},
		first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
		after: storetest.State{Record: done(storetest.Me1)},
	},

	{
		name: "abort", do: finish(store.Abort), hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runs(storetest.Me1, "1")},
		first:  outcome{end: store.Handed, stored: store.WasStored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: aborted(storetest.Me1), RecordTTL: abortTTL},
		said:   []string{storetest.Bob1 + " p:k"},
	},
	{
		name: "abort after one that died: that stays so", do: finish(store.Abort),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "3"), RecordTTL: 2 * storetest.Keep},
		first:  outcome{end: store.Freed, stored: store.WasStored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Record: runs("aborted:"+storetest.Me1, "2"), RecordTTL: 2 * storetest.Keep},
	},
	{
		name: "commit after an abort of our own, after one that died", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs("aborted:"+storetest.Me1, "2")},
		first:  outcome{end: store.Freed},
		after:  storetest.State{Record: runs("aborted:"+storetest.Me1, "2")},
	},
	{
		name: "begin late, after its own abort, after one that died: it is gone, and the key too", do: gone,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs("aborted:"+storetest.Me1, "2")},
		after:  storetest.State{Record: runs("aborted:"+storetest.Me1, "2")},
	},
	{
		name: "begin after an abort, after one that died: nobody knows what that has done", do: begin(),
		before: storetest.State{Record: runs("aborted:"+storetest.Bob1, "2")},
		first:  outcome{verdict: store.Interrupted}, second: outcome{verdict: store.Interrupted},
		after: storetest.State{Record: runs("aborted:"+storetest.Bob1, "2")},
	},
	{
		name: "begin anew after an abort, after one that died: it still counts", do: begin(rerun),
		before: storetest.State{Record: runs("aborted:"+storetest.Bob1, "2")},
		first:  outcome{granted: true, number: 3}, second: outcome{granted: true, number: 3},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "3")},
	},
	{
		name: "abort what has not begun: its begin may still come", do: finish(store.Abort),
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1, storetest.Me1}},
		first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}, Record: aborted(storetest.Me1), RecordTTL: abortTTL},
	},
	{
		name: "abort after another's abort", do: finish(store.Abort),
		before: storetest.State{Record: aborted(storetest.Bob1), RecordTTL: abortTTL / 3},
		first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
		after: storetest.State{Record: aborted(storetest.Me1), RecordTTL: abortTTL},
	},
	{
		name: "abort while another runs: its record is not touched", do: finish(store.Abort),
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Me1}, Record: runs(storetest.Bob1, "1")},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: runs(storetest.Bob1, "1")},
	},
	{
		name: "abort a grant after another was done", do: finish(store.Abort),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: done(storetest.Bob1)},
		first:  outcome{end: store.Freed},
		after:  storetest.State{Record: done(storetest.Bob1)},
	},
	{
		name: "abort after a commit of our own: it is not undone", do: finish(store.Abort),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: done(storetest.Me1)},
		first:  outcome{end: store.Freed},
		after:  storetest.State{Record: done(storetest.Me1)},
	},
	{
		name: "abort after a seal of our own: it is not undone", do: finish(store.Abort),
		before: storetest.State{Record: sealed(storetest.Me1)},
		after:  storetest.State{Record: sealed(storetest.Me1)},
	},

	{
		name: "renew: the record lives on too", do: renewAttempt,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: runs(storetest.Me1, "1"), RecordTTL: time.Minute},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1")},
	},
	{
		name: "renew: the record is never kept for less", do: renewAttempt,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: runs(storetest.Me1, "1"), RecordTTL: 2 * storetest.Keep},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1"), RecordTTL: 2 * storetest.Keep},
	},
	{
		name: "renew beside a record of another", do: renewAttempt,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: runs(storetest.Bob1, "1"), RecordTTL: time.Minute},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Bob1, "1"), RecordTTL: time.Minute},
	},
	{
		name: "renew without a record: it is not made", do: renewAttempt,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim}, after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
		first: outcome{granted: true}, second: outcome{granted: true},
	},
	{
		name: "renew another's key: the record is left alone", do: renewAttempt,
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1"), RecordTTL: time.Minute},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1"), RecordTTL: time.Minute},
	},

	{
		name: "resolve one that died", do: resolve,
		before: storetest.State{Record: runs(storetest.Bob1, "1")},
	},
	{
		name: "resolve one that died, while another holds the key", do: resolve,
		before: storetest.State{Value: storetest.Eve1, TTL: storetest.TTL, Queue: []string{storetest.Me1}, Record: runs(storetest.Bob1, "1")},
		after:  storetest.State{Value: storetest.Eve1, TTL: storetest.TTL, Queue: []string{storetest.Me1}},
	},
	{
		name: "resolve one that runs", do: resolve,
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: runs(storetest.Bob1, "1")},
		first:  outcome{running: true}, second: outcome{running: true},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: runs(storetest.Bob1, "1")},
	},
	{name: "resolve nothing", do: resolve},
	{
		name: "resolve one that is done", do: resolve,
		before: storetest.State{Record: done(storetest.Bob1)}, after: storetest.State{Record: done(storetest.Bob1)},
	},
	{
		name: "resolve one that is sealed", do: resolve,
		before: storetest.State{Record: sealed(storetest.Bob1)}, after: storetest.State{Record: sealed(storetest.Bob1)},
	},
	{
		name: "resolve one that was aborted", do: resolve,
		before: storetest.State{Record: aborted(storetest.Bob1), RecordTTL: abortTTL},
		after:  storetest.State{Record: aborted(storetest.Bob1), RecordTTL: abortTTL},
	},
}

// damaged are records that nobody could have written.
var damaged = map[string]hash{
	"no state":                  {"t": storetest.Bob1, "f": "print", "n": "1"},
	"a state that is none":      {"s": "Z", "t": storetest.Bob1, "f": "print", "n": "1"},
	"two states":                {"s": "RD", "t": storetest.Bob1, "f": "print", "n": "1"},
	"done, without an answer":   {"s": "D", "t": storetest.Bob1, "f": "print"},
	"done, without a print":     {"s": "D", "t": storetest.Bob1, "p": storetest.Record},
	"sealed, without a token":   {"s": "U", "f": "print"},
	"running, without a token":  {"s": "R", "f": "print", "n": "1"},
	"running, without a number": {"s": "R", "t": storetest.Bob1, "f": "print"},
	"running, with a word":      {"s": "R", "t": storetest.Bob1, "f": "print", "n": "one"},
	"aborted, without a token":  {"s": "A", "f": "print"},
}

// Nothing runs beside a record that says nothing, and it stays.
func ofDamagedRecords() (tests []transitionTest) {
	for name, record := range damaged {
		for how, change := range map[string]func(*storetest.AnyRequest){"begin": func(*storetest.AnyRequest) {}, "begin anew": rerun} {
			tests = append(tests, transitionTest{
				name: how + " beside a damaged record: " + name, do: begin(change),
				before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: record},
				first:  outcome{verdict: store.Sealed}, second: outcome{verdict: store.Sealed},
				after: storetest.State{Record: record},
			})
		}
		if name != "done, without an answer" { // which is a whole one to who does not read it
			tests = append(tests, transitionTest{
				name: "commit beside a damaged record: " + name, do: finish(store.Commit),
				before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: record},
				first:  outcome{end: store.Freed},
				after:  storetest.State{Record: record},
			})
		}
	}
	return tests
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
	return outcome{granted: got.Held, line: got.Waiting}
}

// gone begins an attempt that is gone: there is no answer that anybody could want.
func gone(t *testing.T, s *syncStore) outcome {
	t.Helper()
	got, err := s.Enqueue(t.Context(), storetest.AttemptRequest(storetest.Me1))
	var odd *command.UnexpectedReplyError
	if !errors.As(err, &odd) || got.Granted {
		t.Errorf("%+v, %v", got, err)
	}
	return outcome{}
}

package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// attempt returns a request for the key k that belongs to an attempt.
func attempt(token string) store.Request {
	r := request(token)
	r.Attempt = &store.Attempt{Fingerprint: []byte("print"), Keep: keep}
	return r
}

// begin asks as an attempt.
func begin(change ...func(*store.Request)) transition {
	return func(t *testing.T, s *syncStore) outcome {
		t.Helper()
		r := attempt(me1)
		for _, change := range change {
			change(&r)
		}
		asked := time.Now()
		got, err := s.Enqueue(t.Context(), r)
		return answered(t, asked, got, err)
	}
}

// theAnswer is what a commit stores.
const theAnswer = "answer\x00\xff\r\n"

func rerun(r *store.Request)   { r.Attempt.Rerun = true }
func another(r *store.Request) { r.Attempt.Fingerprint = []byte("another") }
func aside(r *store.Request)   { r.Join = false }

// finish ends an attempt.
func finish(ending store.Ending) transition {
	return func(t *testing.T, s *syncStore) outcome {
		t.Helper()
		r := attempt(me1)
		r.Ending = ending
		if ending == store.Commit {
			r.Record = []byte(theAnswer)
		}
		got, err := s.Release(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return outcome{end: got.End, stored: got.Stored}
	}
}

func resolve(t *testing.T, s *syncStore) outcome {
	t.Helper()
	running, err := s.Resolve(t.Context(), store.Request{Key: "k", Bound: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return outcome{running: running}
}

type hash = map[string]string

func runs(token, number string) hash {
	return hash{"s": "R", "t": token, "f": "print", "n": number}
}

func done(token string) hash {
	return hash{"s": "D", "t": token, "f": "print", "p": theAnswer}
}
func sealed(token string) hash  { return hash{"s": "U", "t": token, "f": "print"} }
func aborted(token string) hash { return hash{"s": "A", "t": token, "f": "print"} }

// ofAttempts are the transitions of attempts. Those of the line are the same as
// for other requests.
var ofAttempts = []transitionTest{
	{
		name: "begin the first attempt", do: begin(),
		first: outcome{granted: true, number: 1}, second: outcome{granted: true, number: 1},
		after: state{value: me1, ttl: ttl, record: runs(me1, "1")},
	},
	{
		name: "begin when a grant is confirmed: a full life", do: begin(), hears: []string{bob},
		before: state{value: me1, ttl: claim, line: []string{bob1}},
		first:  outcome{granted: true, line: 1, number: 1}, second: outcome{granted: true, line: 1, number: 1},
		after: state{value: me1, ttl: ttl, line: []string{bob1}, record: runs(me1, "1")},
	},
	{
		name: "begin again in a lease that is shorter: the record's life is not touched", do: begin(),
		before: state{value: me1, ttl: claim, record: runs(me1, "4"), recordTTL: 2 * keep},
		first:  outcome{granted: true, number: 4}, second: outcome{granted: true, number: 4},
		after: state{value: me1, ttl: ttl, record: runs(me1, "4"), recordTTL: 2 * keep},
	},
	{
		name: "begin after an abort: that is no record, whatever its request", do: begin(another),
		before: state{record: aborted(bob1), recordTTL: abortLife},
		first:  outcome{granted: true, number: 1}, second: outcome{granted: true, number: 1},
		after: state{value: me1, ttl: ttl, record: hash{"s": "R", "t": me1, "f": "another", "n": "1"}},
	},
	{
		name: "begin late, after its own abort: it is gone, and the key too", do: gone, hears: []string{bob},
		before: state{value: me1, ttl: ttl, line: []string{me1, bob1}, record: aborted(me1), recordTTL: abortLife},
		after:  state{value: bob1, ttl: claim, record: aborted(me1), recordTTL: abortLife},
		said:   []string{bob1 + " p:k"},
	},
	{
		name: "begin late, after its own abort, a free key: not taken", do: gone,
		before: state{record: aborted(me1), recordTTL: abortLife},
		after:  state{record: aborted(me1), recordTTL: abortLife},
	},

	{
		name: "begin while another runs: busy", do: begin(), hears: []string{bob},
		before: state{value: bob1, ttl: time.Hour, record: runs(bob1, "1")},
		first:  outcome{holder: bob1, remaining: time.Hour, running: true},
		second: outcome{holder: bob1, remaining: time.Hour, running: true},
		after:  state{value: bob1, ttl: time.Hour, line: []string{me1}, record: runs(bob1, "1")},
		said:   []string{bob1 + " p:k", bob1 + " p:k"},
	},
	{
		name: "begin while another runs, and not wait", do: begin(aside),
		before: state{value: bob1, ttl: time.Hour, record: runs(bob1, "1")},
		first:  outcome{holder: bob1, remaining: time.Hour, running: true},
		second: outcome{holder: bob1, remaining: time.Hour, running: true},
		after:  state{value: bob1, ttl: time.Hour, record: runs(bob1, "1")},
	},
	{
		name: "begin behind a lock that is no attempt's", do: begin(),
		before: state{value: "other", ttl: time.Hour},
		first:  outcome{holder: "other", remaining: time.Hour, silent: true},
		second: outcome{holder: "other", remaining: time.Hour, silent: true},
		after:  state{value: "other", ttl: time.Hour, line: []string{me1}},
	},
	{
		name: "begin behind a living line", do: begin(), hears: []string{bob},
		before: state{line: []string{bob1}},
		first:  outcome{holder: bob1, remaining: claim}, second: outcome{holder: bob1, remaining: claim},
		after: state{value: bob1, ttl: claim, line: []string{me1}},
		said:  []string{bob1 + " p:k", bob1 + " p:k"},
	},
	{
		name: "begin in a key that was lost to another: ours is the attempt that runs", do: begin(aside),
		before: state{value: bob1, ttl: time.Hour, record: runs(me1, "1")},
		first:  outcome{holder: bob1, remaining: time.Hour, running: true},
		second: outcome{holder: bob1, remaining: time.Hour, running: true},
		after:  state{value: bob1, ttl: time.Hour, record: runs(me1, "1")},
	},

	{
		name: "begin what is done: its answer", do: begin(),
		before: state{record: done(bob1)},
		first:  outcome{verdict: store.Done, record: theAnswer},
		second: outcome{verdict: store.Done, record: theAnswer},
		after:  state{record: done(bob1)},
	},
	{
		name: "begin what is done, with an empty answer", do: begin(),
		before: state{record: hash{"s": "D", "t": bob1, "f": "print", "p": ""}},
		first:  outcome{verdict: store.Done}, second: outcome{verdict: store.Done},
		after: state{record: hash{"s": "D", "t": bob1, "f": "print", "p": ""}},
	},
	{
		name: "begin what is done, with a grant: it is passed on", do: begin(), hears: []string{eve},
		before: state{value: me1, ttl: claim, line: []string{bob1, me1, eve1}, record: done(bob1)},
		first:  outcome{verdict: store.Done, record: theAnswer},
		second: outcome{verdict: store.Done, record: theAnswer},
		after:  state{value: eve1, ttl: claim, record: done(bob1)},
		said:   []string{eve1 + " p:k"},
	},
	{
		name: "begin what is done, with a grant and alone: it is freed", do: begin(),
		before: state{value: me1, ttl: claim, record: done(bob1)},
		first:  outcome{verdict: store.Done, record: theAnswer},
		second: outcome{verdict: store.Done, record: theAnswer},
		after:  state{record: done(bob1)},
	},
	{
		name: "begin what is done, while another holds the key: out of the line", do: begin(rerun),
		before: state{value: "other", ttl: time.Hour, line: []string{eve1, me1}, record: done(bob1)},
		first:  outcome{verdict: store.Done, record: theAnswer},
		second: outcome{verdict: store.Done, record: theAnswer},
		after:  state{value: "other", ttl: time.Hour, line: []string{eve1}, record: done(bob1)},
	},
	{
		name: "begin what is sealed", do: begin(),
		before: state{value: me1, ttl: claim, record: sealed(bob1)},
		first:  outcome{verdict: store.Sealed}, second: outcome{verdict: store.Sealed},
		after: state{record: sealed(bob1)},
	},
	{
		name: "begin another request, while one runs: mismatch before busy", do: begin(another, rerun),
		before: state{value: bob1, ttl: time.Hour, line: []string{eve1, me1}, record: runs(bob1, "1")},
		first:  outcome{verdict: store.Mismatch}, second: outcome{verdict: store.Mismatch},
		after: state{value: bob1, ttl: time.Hour, line: []string{eve1}, record: runs(bob1, "1")},
	},
	{
		name: "begin another request, after one that died", do: begin(another),
		before: state{value: me1, ttl: claim, record: runs(bob1, "1")},
		first:  outcome{verdict: store.Mismatch}, second: outcome{verdict: store.Mismatch},
		after: state{record: runs(bob1, "1")},
	},
	{
		name: "begin another request, after one that is done", do: begin(another),
		before: state{record: done(bob1)},
		first:  outcome{verdict: store.Mismatch}, second: outcome{verdict: store.Mismatch},
		after: state{record: done(bob1)},
	},
	{
		name: "begin another request, after one that is sealed", do: begin(another),
		before: state{record: sealed(bob1)},
		first:  outcome{verdict: store.Mismatch}, second: outcome{verdict: store.Mismatch},
		after: state{record: sealed(bob1)},
	},

	{
		name: "begin after one that died", do: begin(),
		before: state{record: runs(bob1, "1")},
		first:  outcome{verdict: store.Interrupted}, second: outcome{verdict: store.Interrupted},
		after: state{record: runs(bob1, "1")},
	},
	{
		name: "begin after one that died, with a grant: it is passed on", do: begin(), hears: []string{eve},
		before: state{value: me1, ttl: claim, line: []string{eve1}, record: runs(bob1, "1")},
		first:  outcome{verdict: store.Interrupted}, second: outcome{verdict: store.Interrupted},
		after: state{value: eve1, ttl: claim, record: runs(bob1, "1")},
		said:  []string{eve1 + " p:k"},
	},
	{
		name: "begin after one that died, while another has a grant", do: begin(),
		before: state{value: eve1, ttl: claim, line: []string{me1}, record: runs(bob1, "1")},
		first:  outcome{verdict: store.Interrupted}, second: outcome{verdict: store.Interrupted},
		after: state{value: eve1, ttl: claim, record: runs(bob1, "1")},
	},
	{
		name: "begin anew after one that died: counted", do: begin(rerun),
		before: state{record: runs(bob1, "2"), recordTTL: time.Minute},
		first:  outcome{granted: true, number: 3}, second: outcome{granted: true, number: 3},
		after: state{value: me1, ttl: ttl, record: runs(me1, "3")},
	},
	{
		name: "begin anew after one that died: no answer stays", do: begin(rerun),
		before: state{record: hash{"s": "R", "t": bob1, "f": "print", "n": "1", "p": "old"}},
		first:  outcome{granted: true, number: 2}, second: outcome{granted: true, number: 2},
		after: state{value: me1, ttl: ttl, record: runs(me1, "2")},
	},
	{
		name: "begin anew after one that died, while another has a grant: busy", do: begin(rerun, aside),
		before: state{value: eve1, ttl: claim, record: runs(bob1, "1")},
		first:  outcome{holder: eve1, remaining: claim, running: true},
		second: outcome{holder: eve1, remaining: claim, running: true},
		after:  state{value: eve1, ttl: claim, record: runs(bob1, "1")},
	},

	{
		name: "enqueue without an attempt: the record is left alone", do: enqueue,
		before: state{record: runs(bob1, "1")},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: state{value: me1, ttl: ttl, record: runs(bob1, "1")},
	},
	{
		name: "release without an attempt: its outcome stays unknown", do: release,
		before: state{value: me1, ttl: ttl, record: runs(me1, "1")},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
		after: state{record: runs(me1, "1")},
	},

	{
		name: "commit", do: finish(store.Commit),
		before: state{value: me1, ttl: ttl, record: runs(me1, "3"), recordTTL: time.Minute},
		first:  outcome{end: store.Freed, stored: store.WasStored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  state{record: done(me1)},
	},
	{
		name: "commit, and hand over to the first that listens", do: finish(store.Commit), hears: []string{eve},
		before: state{value: me1, ttl: ttl, line: []string{me1, bob1, eve1, bob2}, record: runs(me1, "1")},
		first:  outcome{end: store.Handed, stored: store.WasStored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  state{value: eve1, ttl: claim, line: []string{bob2}, record: done(me1)},
		said:   []string{eve1 + " p:k"},
	},
	{
		name: "commit in a cluster: to who cannot be counted", do: inCluster(finish(store.Commit)),
		before: state{value: me1, ttl: ttl, line: []string{bob1}, record: runs(me1, "1")},
		first:  outcome{end: store.Handed, stored: store.WasStored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  state{value: bob1, ttl: claim, record: done(me1)},
	},
	{
		name: "commit after the key was lost, when nobody began since", do: finish(store.Commit),
		before: state{value: bob1, ttl: ttl, line: []string{eve1}, record: runs(me1, "1")},
		first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
		after: state{value: bob1, ttl: ttl, line: []string{eve1}, record: done(me1)},
	},
	{
		name: "commit after the key was lost, when another runs", do: finish(store.Commit),
		before: state{value: bob1, ttl: ttl, record: runs(bob1, "1")},
		after:  state{value: bob1, ttl: ttl, record: runs(bob1, "1")},
	},
	{
		name: "commit after the key was lost, when another is done", do: finish(store.Commit),
		before: state{record: done(bob1)},
		after:  state{record: done(bob1)},
	},
	{
		name: "commit when another is sealed", do: finish(store.Commit),
		before: state{record: sealed(bob1)},
		after:  state{record: sealed(bob1)},
	},
	{
		name: "commit with the key, when the record is another's", do: finish(store.Commit),
		before: state{value: me1, ttl: ttl, record: runs(bob1, "1")},
		first:  outcome{end: store.Freed},
		after:  state{record: runs(bob1, "1")},
	},
	{
		name: "commit when the record is gone", do: finish(store.Commit), hears: []string{bob},
		before: state{value: me1, ttl: ttl, line: []string{bob1}},
		first:  outcome{end: store.Handed, stored: store.Restored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  state{value: bob1, ttl: claim, record: done(me1)},
		said:   []string{bob1 + " p:k"},
	},
	{
		name: "commit when the record and the key are gone", do: finish(store.Commit),
		first:  outcome{stored: store.Restored},
		second: outcome{stored: store.WasStored},
		after:  state{record: done(me1)},
	},
	{
		name: "commit when the record is gone, and another holds the key", do: finish(store.Commit),
		before: state{value: bob1, ttl: ttl},
		after:  state{value: bob1, ttl: ttl},
	},
	{
		name: "commit after another has begun and aborted", do: finish(store.Commit),
		before: state{record: aborted(bob1), recordTTL: abortLife},
		first:  outcome{stored: store.Restored}, second: outcome{stored: store.WasStored},
		after: state{record: done(me1)},
	},
	{
		name: "commit after an abort of our own: never", do: finish(store.Commit),
		before: state{record: aborted(me1), recordTTL: abortLife},
		after:  state{record: aborted(me1), recordTTL: abortLife},
	},
	{
		name: "seal", do: finish(store.Seal),
		before: state{value: me1, ttl: ttl, record: runs(me1, "1"), recordTTL: time.Minute},
		first:  outcome{end: store.Freed, stored: store.WasStored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  state{record: sealed(me1)},
	},
	{
		name: "seal when the record is gone", do: finish(store.Seal),
		before: state{value: me1, ttl: ttl},
		first:  outcome{end: store.Freed, stored: store.Restored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  state{record: sealed(me1)},
	},
	{
		name: "seal after a commit of our own: its answer stays", do: finish(store.Seal),
		before: state{record: done(me1)},
		first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
		after: state{record: done(me1)},
	},

	{
		name: "abort", do: finish(store.Abort), hears: []string{bob},
		before: state{value: me1, ttl: ttl, line: []string{bob1}, record: runs(me1, "1")},
		first:  outcome{end: store.Handed, stored: store.WasStored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  state{value: bob1, ttl: claim, record: aborted(me1), recordTTL: abortLife},
		said:   []string{bob1 + " p:k"},
	},
	{
		name: "abort after one that died: that stays so", do: finish(store.Abort),
		before: state{value: me1, ttl: ttl, record: runs(me1, "3"), recordTTL: 2 * keep},
		first:  outcome{end: store.Freed, stored: store.WasStored},
		second: outcome{end: store.NotHeld, stored: store.WasStored},
		after:  state{record: runs("aborted:"+me1, "2"), recordTTL: 2 * keep},
	},
	{
		name: "commit after an abort of our own, after one that died", do: finish(store.Commit),
		before: state{value: me1, ttl: ttl, record: runs("aborted:"+me1, "2")},
		first:  outcome{end: store.Freed},
		after:  state{record: runs("aborted:"+me1, "2")},
	},
	{
		name: "begin late, after its own abort, after one that died: it is gone, and the key too", do: gone,
		before: state{value: me1, ttl: ttl, record: runs("aborted:"+me1, "2")},
		after:  state{record: runs("aborted:"+me1, "2")},
	},
	{
		name: "begin after an abort, after one that died: nobody knows what that has done", do: begin(),
		before: state{record: runs("aborted:"+bob1, "2")},
		first:  outcome{verdict: store.Interrupted}, second: outcome{verdict: store.Interrupted},
		after: state{record: runs("aborted:"+bob1, "2")},
	},
	{
		name: "begin anew after an abort, after one that died: it still counts", do: begin(rerun),
		before: state{record: runs("aborted:"+bob1, "2")},
		first:  outcome{granted: true, number: 3}, second: outcome{granted: true, number: 3},
		after: state{value: me1, ttl: ttl, record: runs(me1, "3")},
	},
	{
		name: "abort what has not begun: its begin may still come", do: finish(store.Abort),
		before: state{value: bob1, ttl: ttl, line: []string{eve1, me1}},
		first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
		after: state{value: bob1, ttl: ttl, line: []string{eve1}, record: aborted(me1), recordTTL: abortLife},
	},
	{
		name: "abort after another's abort", do: finish(store.Abort),
		before: state{record: aborted(bob1), recordTTL: abortLife / 3},
		first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
		after: state{record: aborted(me1), recordTTL: abortLife},
	},
	{
		name: "abort while another runs: its record is not touched", do: finish(store.Abort),
		before: state{value: bob1, ttl: ttl, line: []string{me1}, record: runs(bob1, "1")},
		after:  state{value: bob1, ttl: ttl, record: runs(bob1, "1")},
	},
	{
		name: "abort a grant after another was done", do: finish(store.Abort),
		before: state{value: me1, ttl: claim, record: done(bob1)},
		first:  outcome{end: store.Freed},
		after:  state{record: done(bob1)},
	},
	{
		name: "abort after a commit of our own: it is not undone", do: finish(store.Abort),
		before: state{value: me1, ttl: ttl, record: done(me1)},
		first:  outcome{end: store.Freed},
		after:  state{record: done(me1)},
	},
	{
		name: "abort after a seal of our own: it is not undone", do: finish(store.Abort),
		before: state{record: sealed(me1)},
		after:  state{record: sealed(me1)},
	},

	{
		name: "renew: the record lives on too", do: renewAttempt,
		before: state{value: me1, ttl: claim, record: runs(me1, "1"), recordTTL: time.Minute},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: state{value: me1, ttl: ttl, record: runs(me1, "1")},
	},
	{
		name: "renew: the record is never kept for less", do: renewAttempt,
		before: state{value: me1, ttl: claim, record: runs(me1, "1"), recordTTL: 2 * keep},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: state{value: me1, ttl: ttl, record: runs(me1, "1"), recordTTL: 2 * keep},
	},
	{
		name: "renew beside a record of another", do: renewAttempt,
		before: state{value: me1, ttl: claim, record: runs(bob1, "1"), recordTTL: time.Minute},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: state{value: me1, ttl: ttl, record: runs(bob1, "1"), recordTTL: time.Minute},
	},
	{
		name: "renew without a record: it is not made", do: renewAttempt,
		before: state{value: me1, ttl: claim}, after: state{value: me1, ttl: ttl},
		first: outcome{granted: true}, second: outcome{granted: true},
	},
	{
		name: "renew another's key: the record is left alone", do: renewAttempt,
		before: state{value: bob1, ttl: ttl, record: runs(me1, "1"), recordTTL: time.Minute},
		after:  state{value: bob1, ttl: ttl, record: runs(me1, "1"), recordTTL: time.Minute},
	},

	{
		name: "resolve one that died", do: resolve,
		before: state{record: runs(bob1, "1")},
	},
	{
		name: "resolve one that died, while another holds the key", do: resolve,
		before: state{value: eve1, ttl: ttl, line: []string{me1}, record: runs(bob1, "1")},
		after:  state{value: eve1, ttl: ttl, line: []string{me1}},
	},
	{
		name: "resolve one that runs", do: resolve,
		before: state{value: bob1, ttl: ttl, record: runs(bob1, "1")},
		first:  outcome{running: true}, second: outcome{running: true},
		after: state{value: bob1, ttl: ttl, record: runs(bob1, "1")},
	},
	{name: "resolve nothing", do: resolve},
	{
		name: "resolve one that is done", do: resolve,
		before: state{record: done(bob1)}, after: state{record: done(bob1)},
	},
	{
		name: "resolve one that is sealed", do: resolve,
		before: state{record: sealed(bob1)}, after: state{record: sealed(bob1)},
	},
	{
		name: "resolve one that was aborted", do: resolve,
		before: state{record: aborted(bob1), recordTTL: abortLife},
		after:  state{record: aborted(bob1), recordTTL: abortLife},
	},
}

// damaged are records that nobody could have written.
var damaged = map[string]hash{
	"no state":                  {"t": bob1, "f": "print", "n": "1"},
	"a state that is none":      {"s": "Z", "t": bob1, "f": "print", "n": "1"},
	"two states":                {"s": "RD", "t": bob1, "f": "print", "n": "1"},
	"done, without an answer":   {"s": "D", "t": bob1, "f": "print"},
	"done, without a print":     {"s": "D", "t": bob1, "p": theAnswer},
	"sealed, without a token":   {"s": "U", "f": "print"},
	"running, without a token":  {"s": "R", "f": "print", "n": "1"},
	"running, without a number": {"s": "R", "t": bob1, "f": "print"},
	"running, with a word":      {"s": "R", "t": bob1, "f": "print", "n": "one"},
	"aborted, without a token":  {"s": "A", "f": "print"},
}

// Nothing runs beside a record that says nothing, and it stays.
func ofDamagedRecords() (tests []transitionTest) {
	for name, record := range damaged {
		for how, change := range map[string]func(*store.Request){"begin": func(*store.Request) {}, "begin anew": rerun} {
			tests = append(tests, transitionTest{
				name: how + " beside a damaged record: " + name, do: begin(change),
				before: state{value: me1, ttl: ttl, record: record},
				first:  outcome{verdict: store.Sealed}, second: outcome{verdict: store.Sealed},
				after: state{record: record},
			})
		}
		if name != "done, without an answer" { // which is a whole one to who does not read it
			tests = append(tests, transitionTest{
				name: "commit beside a damaged record: " + name, do: finish(store.Commit),
				before: state{value: me1, ttl: ttl, record: record},
				first:  outcome{end: store.Freed},
				after:  state{record: record},
			})
		}
	}
	return tests
}

// renewAttempt renews the key of an attempt.
func renewAttempt(t *testing.T, s *syncStore) outcome {
	t.Helper()
	asked := time.Now()
	got, err := s.Renew(t.Context(), attempt(me1))
	if err != nil {
		t.Fatal(err)
	}
	checkSince(t, got.Since, asked)
	return outcome{granted: got.Held, line: got.Line}
}

// gone begins an attempt that is gone: there is no answer that anybody could want.
func gone(t *testing.T, s *syncStore) outcome {
	t.Helper()
	got, err := s.Enqueue(t.Context(), attempt(me1))
	var odd *shapeError
	if !errors.As(err, &odd) || got.Granted {
		t.Errorf("%+v, %v", got, err)
	}
	return outcome{}
}

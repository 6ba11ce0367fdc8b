package redisstore

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// finish returns a transition that ends an attempt.
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
		return outcome{status: got.Status, stored: got.Record}
	}
}

var attemptEndings = []transitionTest{
	{
		name: "commit", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "3"), RecordTTL: time.Minute},
		first:  outcome{status: store.Freed, stored: store.WasStored},
		second: outcome{status: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Record: doneRecord(storetest.Me1)},
	},
	{
		name: "commit, and hand over to the first waiter that listens", do: finish(store.Commit), listening: []string{storetest.Eve},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Me1, storetest.Bob1, storetest.Eve1, storetest.Bob2}, Record: runningRecord(storetest.Me1, "1")},
		first:  outcome{status: store.Handed, stored: store.WasStored},
		second: outcome{status: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Queue: []string{storetest.Bob2}, Record: doneRecord(storetest.Me1)},
		hints:  []string{storetest.Eve1 + " p:k"},
	},
	{
		name: "commit in mode B: to a waiter that cannot be counted", do: inModeB(finish(store.Commit)),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runningRecord(storetest.Me1, "1")},
		first:  outcome{status: store.Handed, stored: store.WasStored},
		second: outcome{status: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: doneRecord(storetest.Me1)},
	},
	{
		name: "commit after the key was lost, without another attempt", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}, Record: runningRecord(storetest.Me1, "1")},
		first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}, Record: doneRecord(storetest.Me1)},
	},
	{
		name: "commit after the key was lost, while another runs", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: runningRecord(storetest.Bob1, "1")},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: runningRecord(storetest.Bob1, "1")},
	},
	{
		name: "commit after the key was lost, after another commit", do: finish(store.Commit),
		before: storetest.State{Record: doneRecord(storetest.Bob1)},
		after:  storetest.State{Record: doneRecord(storetest.Bob1)},
	},
	{
		name: "commit after the seal of another", do: finish(store.Commit),
		before: storetest.State{Record: sealedRecord(storetest.Bob1)},
		after:  storetest.State{Record: sealedRecord(storetest.Bob1)},
	},
	{
		name: "commit with the key, and the record of another", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Bob1, "1")},
		first:  outcome{status: store.Freed},
		after:  storetest.State{Record: runningRecord(storetest.Bob1, "1")},
	},
	{
		name: "commit without a record", do: finish(store.Commit), listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
		first:  outcome{status: store.Handed, stored: store.Restored},
		second: outcome{status: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: doneRecord(storetest.Me1)},
		hints:  []string{storetest.Bob1 + " p:k"},
	},
	{
		name: "commit without a record and without the key", do: finish(store.Commit),
		first:  outcome{stored: store.Restored},
		second: outcome{stored: store.WasStored},
		after:  storetest.State{Record: doneRecord(storetest.Me1)},
	},
	{
		name: "commit without a record, while another holds the key", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL},
	},
	{
		name: "commit after another has begun and aborted", do: finish(store.Commit),
		before: storetest.State{Record: abortedRecord(storetest.Bob1), RecordTTL: abortTTL},
		first:  outcome{stored: store.Restored}, second: outcome{stored: store.WasStored},
		after: storetest.State{Record: doneRecord(storetest.Me1)},
	},
	{
		name: "commit after the own abort", do: finish(store.Commit),
		before: storetest.State{Record: abortedRecord(storetest.Me1), RecordTTL: abortTTL},
		after:  storetest.State{Record: abortedRecord(storetest.Me1), RecordTTL: abortTTL},
	},
	{
		name: "seal", do: finish(store.Seal),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1"), RecordTTL: time.Minute},
		first:  outcome{status: store.Freed, stored: store.WasStored},
		second: outcome{status: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Record: sealedRecord(storetest.Me1)},
	},
	{
		name: "seal without a record", do: finish(store.Seal),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
		first:  outcome{status: store.Freed, stored: store.Restored},
		second: outcome{status: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Record: sealedRecord(storetest.Me1)},
	},
	{
		name: "seal after the own commit: the answer stays", do: finish(store.Seal),
		before: storetest.State{Record: doneRecord(storetest.Me1)},
		first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
		after: storetest.State{Record: doneRecord(storetest.Me1)},
	},

	{
		name: "abort", do: finish(store.Abort), listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runningRecord(storetest.Me1, "1")},
		first:  outcome{status: store.Handed, stored: store.WasStored},
		second: outcome{status: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: abortedRecord(storetest.Me1), RecordTTL: abortTTL},
		hints:  []string{storetest.Bob1 + " p:k"},
	},
	{
		name: "abort after an attempt that died: the death stays", do: finish(store.Abort),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "3"), RecordTTL: 2 * storetest.Keep},
		first:  outcome{status: store.Freed, stored: store.WasStored},
		second: outcome{status: store.NotHeld, stored: store.WasStored},
		after:  storetest.State{Record: runningRecord("aborted:"+storetest.Me1, "2"), RecordTTL: 2 * storetest.Keep},
	},
	{
		name: "commit after the own abort, after an attempt that died", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord("aborted:"+storetest.Me1, "2")},
		first:  outcome{status: store.Freed},
		after:  storetest.State{Record: runningRecord("aborted:"+storetest.Me1, "2")},
	},
	{
		name: "late begin after its own abort, after an attempt that died: the key is released", do: beginAborted,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord("aborted:"+storetest.Me1, "2")},
		after:  storetest.State{Record: runningRecord("aborted:"+storetest.Me1, "2")},
	},
	{
		name: "begin after an abort, after an attempt that died", do: begin(),
		before: storetest.State{Record: runningRecord("aborted:"+storetest.Bob1, "2")},
		first:  interrupted("aborted:" + storetest.Bob1), second: interrupted("aborted:" + storetest.Bob1),
		after: storetest.State{Record: runningRecord("aborted:"+storetest.Bob1, "2")},
	},
	{
		name: "rerun after an abort, after an attempt that died: the death counts", do: begin(rerun),
		before: storetest.State{Record: runningRecord("aborted:"+storetest.Bob1, "2")},
		first:  outcome{granted: true, number: 3}, second: outcome{granted: true, number: 3},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "3")},
	},
	{
		name: "abort before its begin", do: finish(store.Abort),
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1, storetest.Me1}},
		first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}, Record: abortedRecord(storetest.Me1), RecordTTL: abortTTL},
	},
	{
		name: "abort after the abort of another", do: finish(store.Abort),
		before: storetest.State{Record: abortedRecord(storetest.Bob1), RecordTTL: abortTTL / 3},
		first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
		after: storetest.State{Record: abortedRecord(storetest.Me1), RecordTTL: abortTTL},
	},
	{
		name: "abort while another runs: the record stays", do: finish(store.Abort),
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Me1}, Record: runningRecord(storetest.Bob1, "1")},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: runningRecord(storetest.Bob1, "1")},
	},
	{
		name: "abort a grant after the commit of another", do: finish(store.Abort),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Record: doneRecord(storetest.Bob1)},
		first:  outcome{status: store.Freed},
		after:  storetest.State{Record: doneRecord(storetest.Bob1)},
	},
	{
		name: "abort after the own commit: the answer stays", do: finish(store.Abort),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: doneRecord(storetest.Me1)},
		first:  outcome{status: store.Freed},
		after:  storetest.State{Record: doneRecord(storetest.Me1)},
	},
	{
		name: "abort after the own seal: the seal stays", do: finish(store.Abort),
		before: storetest.State{Record: sealedRecord(storetest.Me1)},
		after:  storetest.State{Record: sealedRecord(storetest.Me1)},
	},
}

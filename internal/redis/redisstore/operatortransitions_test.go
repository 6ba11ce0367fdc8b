package redisstore

import (
	"crypto/sha1"
	"encoding/hex"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// nameOf returns the name of the attempt with this token.
func nameOf(token string) string {
	sum := sha1.Sum([]byte(token))
	return hex.EncodeToString(sum[:])
}

// resolveAs returns a transition that resolves the attempt with this token.
func resolveAs(resolution store.Resolution, token string) transition {
	return func(t *testing.T, s *syncStore) outcome {
		t.Helper()
		r := storetest.AnyRequest{Key: "k", Bound: 5 * time.Second, Seen: nameOf(token), Resolution: resolution}
		r.Keep, r.Record = storetest.Keep, []byte(storetest.Record)
		got, err := s.Resolve(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return outcome{resolved: got}
	}
}

// resolve forgets the attempt of Bob1.
func resolve(t *testing.T, s *syncStore) outcome {
	t.Helper()
	return resolveAs(store.Forget, storetest.Bob1)(t, s)
}

// readOutcome returns a transition that reads the outcome. It expects that the record is kept
// for this time.
func readOutcome(left time.Duration) transition {
	return func(t *testing.T, s *syncStore) outcome {
		t.Helper()
		got, err := s.Outcome(t.Context(), storetest.AnyRequest{Key: "k", Bound: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if got.State != store.Absent && !storetest.IsTTL(got.Left, left) {
			t.Errorf("the record is kept for %v, want %v", got.Left, left)
		}
		got.Left = 0
		return outcome{read: got}
	}
}

// resolvedRecord is a record as resolve.lua leaves it.
func resolvedRecord(token string, answer ...string) hash {
	record := hash{"s": "U", "t": "resolved:" + nameOf(token), "f": "print"}
	for _, p := range answer {
		record["s"], record["p"] = "D", p
	}
	return record
}

// forgottenRecord is a record as resolve.lua leaves it after Forget.
func forgottenRecord(token string) hash { return forgotten(token, abortedRecord(token)) }

// forgotten adds to a record that an operator has forgotten the attempts of these tokens before.
func forgotten(tokens string, record hash) hash {
	record["x"] = " " + tokens + " "
	return record
}

// reportedRecord is the record of an attempt that runs or has died, with a note that the
// unknown outcome of an attempt was reported.
func reportedRecord(token, number, reported string) hash {
	record := runningRecord(token, number)
	record["u"] = nameOf(reported)
	return record
}

// operatorTransitions are what an operator does.
func operatorTransitions() []transitionTest {
	died := runningRecord(storetest.Bob1, "3")
	resolved, none := outcome{resolved: store.Resolved}, outcome{}
	changed := outcome{resolved: store.Changed}
	tests := []transitionTest{
		{
			name: "forget an attempt that died: its late commit is refused", do: resolve, before: storetest.State{Record: died, RecordTTL: time.Minute},
			first: resolved, second: none, after: storetest.State{Record: forgottenRecord(storetest.Bob1)},
		},
		{
			name: "forget an attempt that died, while another holds the key", do: resolve,
			before: storetest.State{Value: storetest.Eve1, TTL: storetest.TTL, Queue: []string{storetest.Me1}, Record: died},
			first:  resolved, second: none,
			after: storetest.State{Value: storetest.Eve1, TTL: storetest.TTL, Queue: []string{storetest.Me1}, Record: forgottenRecord(storetest.Bob1)},
		},
		{
			name: "forget a second attempt: the first one stays forgotten", do: resolve,
			before: storetest.State{Record: forgotten(storetest.Me1, runningRecord(storetest.Bob1, "1"))}, first: resolved, second: none,
			after: storetest.State{Record: forgotten(storetest.Me1+" "+storetest.Bob1, abortedRecord(storetest.Bob1))},
		},
		{
			name: "commit after an operator has forgotten the attempt and a later one", do: finish(store.Commit),
			before: storetest.State{Record: forgotten(storetest.Me1+" "+storetest.Bob1, abortedRecord(storetest.Bob1))},
			after:  storetest.State{Record: forgotten(storetest.Me1+" "+storetest.Bob1, abortedRecord(storetest.Bob1))},
		},
		{
			name: "commit after an operator has forgotten the attempt", do: finish(store.Commit),
			before: storetest.State{Record: forgottenRecord(storetest.Me1), RecordTTL: time.Minute},
			after:  storetest.State{Record: forgottenRecord(storetest.Me1), RecordTTL: time.Minute},
		},
		{
			name: "commit after an operator has forgotten the attempt, and another was aborted", do: finish(store.Commit),
			before: storetest.State{Record: forgotten(storetest.Me1, abortedRecord(storetest.Bob1))},
			after:  storetest.State{Record: forgotten(storetest.Me1, abortedRecord(storetest.Bob1))},
		},
		{
			name: "begin after an operator has forgotten an attempt", do: begin(),
			before: storetest.State{Record: forgottenRecord(storetest.Bob1), RecordTTL: time.Minute},
			first:  outcome{granted: true, number: 1}, second: outcome{granted: true, number: 1},
			after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: forgotten(storetest.Bob1, runningRecord(storetest.Me1, "1"))},
		},
		{
			name: "abort after an operator has forgotten an attempt: the record stays as long", do: finish(store.Abort),
			before: storetest.State{Record: forgottenRecord(storetest.Bob1)},
			first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
			after: storetest.State{Record: forgotten(storetest.Bob1, abortedRecord(storetest.Me1))},
		},
		{
			name: "commit after an operator has forgotten another attempt", do: finish(store.Commit),
			before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: forgotten(storetest.Bob1, runningRecord(storetest.Me1, "1"))},
			first:  outcome{status: store.Freed, stored: store.WasStored}, second: outcome{stored: store.WasStored},
			after: storetest.State{Record: forgotten(storetest.Bob1, doneRecord(storetest.Me1))},
		},
		{
			name: "mark an attempt that died as done: the print stays", do: resolveAs(store.ResolveDone, storetest.Bob1),
			before: storetest.State{Record: died, RecordTTL: time.Minute},
			first:  resolved, second: resolved,
			after: storetest.State{Record: resolvedRecord(storetest.Bob1)},
		},
		{
			name: "answer an attempt that died", do: resolveAs(store.ResolveAnswered, storetest.Bob1),
			before: storetest.State{Value: storetest.Eve1, TTL: storetest.TTL, Record: died, RecordTTL: 2 * storetest.Keep},
			first:  resolved, second: resolved,
			after: storetest.State{Value: storetest.Eve1, TTL: storetest.TTL, Record: resolvedRecord(storetest.Bob1, storetest.Record)},
		},
		{
			name: "answer an attempt that was aborted after one that died", do: resolveAs(store.ResolveAnswered, "aborted:"+storetest.Bob1),
			before: storetest.State{Record: runningRecord("aborted:"+storetest.Bob1, "2")},
			first:  resolved, second: resolved,
			after: storetest.State{Record: resolvedRecord("aborted:"+storetest.Bob1, storetest.Record)},
		},
		{
			name: "answer after another answer of an operator", do: resolveAs(store.ResolveAnswered, storetest.Bob1),
			before: storetest.State{Record: resolvedRecord(storetest.Bob1, "another")}, first: changed, second: changed,
			after: storetest.State{Record: resolvedRecord(storetest.Bob1, "another")},
		},
		{
			name: "forget after an answer of an operator", do: resolve,
			before: storetest.State{Record: resolvedRecord(storetest.Bob1, storetest.Record)}, first: changed, second: changed,
			after: storetest.State{Record: resolvedRecord(storetest.Bob1, storetest.Record)},
		},

		{
			name: "note that an attempt that died was reported", do: resolveAs(store.NoteReported, storetest.Bob1),
			before: storetest.State{Record: died, RecordTTL: time.Minute},
			first:  resolved, second: resolved,
			after: storetest.State{Record: reportedRecord(storetest.Bob1, "3", storetest.Bob1), RecordTTL: time.Minute},
		},
		{
			name: "note that an attempt was reported, while a newer one runs", do: resolveAs(store.NoteReported, storetest.Bob1),
			before: storetest.State{Value: storetest.Bob2, TTL: storetest.TTL, Record: runningRecord(storetest.Bob2, "4")},
			first:  changed, second: changed,
			after: storetest.State{Value: storetest.Bob2, TTL: storetest.TTL, Record: runningRecord(storetest.Bob2, "4")},
		},
		{
			name: "begin after an attempt that died and was reported", do: begin(),
			before: storetest.State{Record: reportedRecord(storetest.Bob1, "3", storetest.Bob1)},
			first:  outcome{verdict: store.Interrupted}, second: outcome{verdict: store.Interrupted},
			after: storetest.State{Record: reportedRecord(storetest.Bob1, "3", storetest.Bob1)},
		},
		{
			name: "begin after an attempt that died, and only an earlier one was reported", do: begin(),
			before: storetest.State{Record: reportedRecord(storetest.Bob2, "4", storetest.Bob1)},
			first:  interrupted(storetest.Bob2), second: interrupted(storetest.Bob2),
			after: storetest.State{Record: reportedRecord(storetest.Bob2, "4", storetest.Bob1)},
		},
		{
			name: "rerun after an attempt that died and was reported: no note stays", do: begin(rerun),
			before: storetest.State{Record: reportedRecord(storetest.Bob1, "3", storetest.Bob1)},
			first:  outcome{granted: true, number: 4}, second: outcome{granted: true, number: 4},
			after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "4")},
		},
		{
			name: "late commit of an attempt that was reported: no note stays", do: finish(store.Commit),
			before: storetest.State{Record: reportedRecord(storetest.Me1, "1", storetest.Me1)},
			first:  outcome{stored: store.WasStored}, second: outcome{stored: store.WasStored},
			after: storetest.State{Record: doneRecord(storetest.Me1)},
		},
		{
			name: "mark an attempt that was reported as done: no note stays", do: resolveAs(store.ResolveDone, storetest.Bob1),
			before: storetest.State{Record: reportedRecord(storetest.Bob1, "3", storetest.Bob1)},
			first:  resolved, second: resolved,
			after: storetest.State{Record: resolvedRecord(storetest.Bob1)},
		},

		{
			name: "late commit of an attempt that an operator marked as done", do: finish(store.Commit),
			before: storetest.State{Record: resolvedRecord(storetest.Me1)},
			after:  storetest.State{Record: resolvedRecord(storetest.Me1)},
		},
		{
			name: "late commit of an attempt that an operator answered", do: finish(store.Commit),
			before: storetest.State{Record: resolvedRecord(storetest.Me1, storetest.Record)},
			after:  storetest.State{Record: resolvedRecord(storetest.Me1, storetest.Record)},
		},
		{
			name: "late abort of an attempt that an operator marked as done", do: finish(store.Abort),
			before: storetest.State{Record: resolvedRecord(storetest.Me1)},
			after:  storetest.State{Record: resolvedRecord(storetest.Me1)},
		},
		{
			name: "begin after an operator's answer", do: begin(),
			before: storetest.State{Record: resolvedRecord(storetest.Bob1, storetest.Record)},
			first:  outcome{verdict: store.Done, record: storetest.Record}, second: outcome{verdict: store.Done, record: storetest.Record},
			after: storetest.State{Record: resolvedRecord(storetest.Bob1, storetest.Record)},
		},
		{
			name: "begin with another fingerprint after an operator marked the request as done", do: begin(otherFingerprint),
			before: storetest.State{Record: resolvedRecord(storetest.Bob1)},
			first:  outcome{verdict: store.Mismatch}, second: outcome{verdict: store.Mismatch},
			after: storetest.State{Record: resolvedRecord(storetest.Bob1)},
		},
	}
	for name, resolution := range map[string]store.Resolution{"forget": store.Forget, "done": store.ResolveDone, "answer": store.ResolveAnswered, "note": store.NoteReported} {
		for what, test := range map[string]struct {
			token  string // that was seen
			state  storetest.State
			status store.ResolveStatus
		}{
			"an attempt that runs": {
				storetest.Bob1, storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: died}, store.StillRunning,
			},
			"no record":                                    {storetest.Bob1, storetest.State{}, store.NoRecord},
			"an aborted attempt":                           {storetest.Bob1, storetest.State{Record: abortedRecord(storetest.Bob1), RecordTTL: abortTTL}, store.NoRecord},
			"a newer attempt that died":                    {storetest.Bob1, storetest.State{Record: runningRecord(storetest.Bob2, "4")}, store.Changed},
			"a newer attempt that runs":                    {storetest.Bob1, storetest.State{Value: storetest.Bob2, TTL: storetest.TTL, Record: runningRecord(storetest.Bob2, "4")}, store.Changed},
			"an attempt that another one aborted after it": {storetest.Bob1, storetest.State{Record: runningRecord("aborted:"+storetest.Bob2, "3")}, store.Changed},
			"an attempt with an answer":                    {storetest.Bob1, storetest.State{Record: doneRecord(storetest.Bob1)}, store.Changed},
			"a sealed attempt":                             {storetest.Bob1, storetest.State{Record: sealedRecord(storetest.Bob1)}, store.Changed},
			"a damaged record":                             {storetest.Bob1, storetest.State{Record: hash{"f": "print"}}, store.Changed},
		} {
			tests = append(tests, transitionTest{
				name: name + ", but there is " + what, do: resolveAs(resolution, test.token), before: test.state,
				first: outcome{resolved: test.status}, second: outcome{resolved: test.status}, after: test.state,
			})
		}
	}
	for what, test := range map[string]struct {
		state storetest.State
		want  store.Outcome
	}{
		"no record":          {storetest.State{}, store.Outcome{}},
		"an aborted attempt": {storetest.State{Record: abortedRecord(storetest.Bob1), RecordTTL: abortTTL}, store.Outcome{}},
		"an attempt that runs": {
			storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: died},
			store.Outcome{State: store.Running, Attempt: nameOf(storetest.Bob1), Number: 3},
		},
		"an attempt that died": {
			storetest.State{Value: storetest.Eve1, TTL: storetest.TTL, Record: died},
			store.Outcome{State: store.Unknown, Attempt: nameOf(storetest.Bob1), Number: 3},
		},
		"an attempt that was aborted after one that died": {
			storetest.State{Record: runningRecord("aborted:"+storetest.Bob1, "2")},
			store.Outcome{State: store.Unknown, Attempt: nameOf("aborted:" + storetest.Bob1), Number: 2},
		},
		"an answer":     {storetest.State{Record: doneRecord(storetest.Bob1)}, store.Outcome{State: store.WasAnswered, Attempt: nameOf(storetest.Bob1)}},
		"a sealed one":  {storetest.State{Record: sealedRecord(storetest.Bob1)}, store.Outcome{State: store.WasSealed, Attempt: nameOf(storetest.Bob1)}},
		"a damaged one": {storetest.State{Record: hash{"s": "R", "t": storetest.Bob1, "n": "1"}}, store.Outcome{State: store.Damaged, Attempt: nameOf(storetest.Bob1)}},
	} {
		tests = append(tests, transitionTest{
			name: "read the outcome: " + what, do: readOutcome(test.state.WantRecordTTL()), before: test.state,
			first: outcome{read: test.want}, second: outcome{read: test.want}, after: test.state,
		})
	}
	return tests
}

package redisstore

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redis/script"
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
	return func(t *testing.T, s *syncStore) (outcome, error) {
		t.Helper()
		r := storetest.AnyRequest{Key: "k", Bound: 5 * time.Second, Seen: nameOf(token), Resolution: resolution}
		r.Keep, r.Record = storetest.Keep, []byte(storetest.Record)
		got, err := s.Resolve(t.Context(), r)
		return outcome{resolved: got}, err
	}
}

// resolve forgets the attempt of Bob1.
var resolve = resolveAs(store.ResolveNotDone, storetest.Bob1)

// readOutcome returns a transition that reads the outcome. It expects that the record is kept
// for this time.
func readOutcome(left time.Duration) transition {
	return func(t *testing.T, s *syncStore) (outcome, error) {
		t.Helper()
		got, err := s.Outcome(t.Context(), storetest.AnyRequest{Key: "k", Bound: 5 * time.Second})
		if got.State != store.Absent && !storetest.IsTTL(got.Left, left) {
			t.Errorf("the record is kept for %v, want %v", got.Left, left)
		}
		got.Left = 0
		return outcome{read: got}, err
	}
}

// forgotten adds to a record that an operator has forgotten the attempts of these tokens before.
func forgotten(tokens string, record hash) hash {
	record["x"] = " " + tokens + " "
	return record
}

var resolutions = map[string]store.Resolution{"forget": store.ResolveNotDone, "done": store.ResolveDone, "answer": store.ResolveAnswered, "note": store.NoteReported}

// operatorTransitions are what an operator does.
func operatorTransitions() []transitionTest {
	tests := slices.Clone(operatorRows)
	for name, resolution := range resolutions {
		for what, test := range map[string]struct{ state, result string }{
			"an attempt that runs":                         {"B1 ttl | | R B1 3", "still running"},
			"no record":                                    {"", "nothing"},
			"an aborted attempt":                           {"| | A B1 @abort", "nothing"},
			"a newer attempt that died":                    {"| | R B2 4", "changed"},
			"a newer attempt that runs":                    {"B2 ttl | | R B2 4", "changed"},
			"an attempt that another one aborted after it": {"| | R aborted:B2 3", "changed"},
			"an attempt with an answer":                    {"| | D B1", "changed"},
			"a sealed attempt":                             {"| | U B1", "changed"},
		} {
			state, result := stateOf(test.state), outcomeOfText(test.result)
			tests = append(tests, transitionTest{
				name: name + ", but there is " + what, do: resolveAs(resolution, storetest.Bob1), before: state, first: result, second: result, after: state,
			})
		}
	}
	for what, test := range map[string]struct {
		state string
		want  store.Outcome
	}{
		"no record":            {"", store.Outcome{}},
		"an aborted attempt":   {"| | A B1 @abort", store.Outcome{}},
		"an attempt that runs": {"B1 ttl | | R B1 3", store.Outcome{State: store.Running, Attempt: nameOf(storetest.Bob1), Number: 3}},
		"an attempt that died": {"C1 ttl | | R B1 3", store.Outcome{State: store.Unknown, Attempt: nameOf(storetest.Bob1), Number: 3}},
		"an attempt that was aborted after one that died": {"| | R aborted:B1 2", store.Outcome{State: store.Unknown, Attempt: nameOf("aborted:" + storetest.Bob1), Number: 2}},
		"an answer":    {"| | D B1", store.Outcome{State: store.WasAnswered, Attempt: nameOf(storetest.Bob1)}},
		"a sealed one": {"| | U B1", store.Outcome{State: store.WasDone, Attempt: nameOf(storetest.Bob1)}},
	} {
		state, result := stateOf(test.state), outcome{read: test.want}
		if test.want.State != store.Absent {
			result.read.Fingerprint = "print"
		}
		tests = append(tests, transitionTest{
			name: "read the outcome: " + what, do: readOutcome(state.WantRecordTTL()), before: state, first: result, second: result, after: state,
		})
	}
	return tests
}

var operatorRows = testsOf([]transitionRow{
	{name: "forget an attempt that died: its late commit is refused", do: resolve, before: "| | R B1 3 @1m", first: "resolved", second: "nothing", after: "| | A B1 x=B1"},
	{name: "forget an attempt that died, while another holds the key", do: resolve, before: "C1 ttl | A1 | R B1 3", first: "resolved", second: "nothing", after: "C1 ttl | A1 | A B1 x=B1"},
	{name: "forget a second attempt: the first one stays forgotten", do: resolve, before: "| | R B1 1 x=A1", first: "resolved", second: "nothing", after: "| | A B1 x=A1,B1"},
	{name: "commit after an operator has forgotten the attempt and a later one", do: finish(store.EndCommit), before: "| | A B1 x=A1,B1", first: "nothing", after: "="},
	{name: "commit after an operator has forgotten the attempt", do: finish(store.EndCommit), before: "| | A A1 x=A1 @1m", first: "nothing", after: "="},
	{name: "commit after an operator has forgotten the attempt, and another was aborted", do: finish(store.EndCommit), before: "| | A B1 x=A1", first: "nothing", after: "="},
	{name: "begin after an operator has forgotten an attempt", do: begin(), before: "| | A B1 x=B1 @1m", first: "granted, number 1", after: "A1 ttl | | R A1 1 x=B1"},
	{name: "abort after an operator has forgotten an attempt: the record stays as long", do: finish(store.EndAbort), before: "| | A B1 x=B1", first: "stored", after: "| | A A1 x=B1"},
	{name: "commit after an operator has forgotten another attempt", do: finish(store.EndCommit), before: "A1 ttl | | R A1 1 x=B1", first: "freed, stored", second: "stored", after: "| | D A1 x=B1"},
	{name: "abort a rerun after an operator has forgotten an attempt: it stays forgotten", do: finish(store.EndAbort), before: "| | R A1 2 x=B1 @1m", first: "stored", after: "| | R aborted:A1 1 x=B1 @1m"},
	{name: "mark an attempt that died as done: the print stays", do: resolveAs(store.ResolveDone, storetest.Bob1), before: "| | R B1 3 @1m", first: "resolved", after: "| | U resolved:B1"},
	{name: "answer an attempt that died", do: resolveAs(store.ResolveAnswered, storetest.Bob1), before: "C1 ttl | | R B1 3 @2h", first: "resolved", after: "C1 ttl | | D resolved:B1"},
	{name: "answer an attempt that was aborted after one that died", do: resolveAs(store.ResolveAnswered, "aborted:"+storetest.Bob1), before: "| | R aborted:B1 2", first: "resolved", after: "| | D resolved:aborted:B1"},
	{name: "answer after another answer of an operator", do: resolveAs(store.ResolveAnswered, storetest.Bob1), before: "| | D resolved:B1 p=another", first: "changed", after: "="},
	{name: "forget after an answer of an operator", do: resolve, before: "| | D resolved:B1", first: "changed", after: "="},

	{name: "note that an attempt that died was reported", do: resolveAs(store.NoteReported, storetest.Bob1), before: "| | R B1 3 @1m", first: "resolved", after: "| | R B1 3 u=1 @1m"},
	{name: "note that an attempt was reported: its reference and what was forgotten stay", do: resolveAs(store.NoteReported, storetest.Bob1), before: "| | R B1 3 x=A1 r=first @1m", first: "resolved", after: "| | R B1 3 x=A1 r=first u=1 @1m"},
	{name: "mark an attempt as done: its reference and what was forgotten stay", do: resolveAs(store.ResolveDone, storetest.Bob1), before: "| | R B1 3 x=A1 r=first", first: "resolved", after: "| | U resolved:B1 x=A1 r=first"},
	{name: "note that an attempt was reported, while a newer one runs", do: resolveAs(store.NoteReported, storetest.Bob1), before: "B2 ttl | | R B2 4", first: "changed", after: "="},
	{name: "begin after an attempt that died and was reported", do: begin(), before: "| | R B1 3 u=1", first: "interrupted", after: "="},
	{name: "abort a rerun whose unknown outcome was reported: that of the attempt before was not", do: finish(store.EndAbort), before: "| | R A1 4 u=1", first: "stored", after: "| | R aborted:A1 3"},
	{name: "rerun after an attempt that died and was reported: no note stays", do: begin(rerun), before: "| | R B1 3 u=1", first: "granted, number 4", after: "A1 ttl | | R A1 4"},
	{name: "late commit of an attempt that was reported: no note stays", do: finish(store.EndCommit), before: "| | R A1 1 u=1", first: "stored", after: "| | D A1"},
	{name: "mark an attempt that was reported as done: no note stays", do: resolveAs(store.ResolveDone, storetest.Bob1), before: "| | R B1 3 u=1", first: "resolved", after: "| | U resolved:B1"},

	{name: "late commit of an attempt that an operator marked as done", do: finish(store.EndCommit), before: "| | U resolved:A1", first: "nothing", after: "="},
	{name: "late commit of an attempt that an operator answered", do: finish(store.EndCommit), before: "| | D resolved:A1", first: "nothing", after: "="},
	{name: "late abort of an attempt that an operator marked as done", do: finish(store.EndAbort), before: "| | U resolved:A1", first: "nothing", after: "="},
	{name: "begin after an operator's answer", do: begin(), before: "| | D resolved:B1", first: "done, answer", after: "="},
	{name: "begin with another fingerprint after an operator marked the request as done", do: begin(otherFingerprint), before: "| | U resolved:B1", first: "mismatch", after: "="},
})

// damaged are values that no script writes in the place of a record.
var damaged = map[string]hash{
	"a hash":                    {storetest.AnyHash: "x", "s": "D", "t": storetest.Bob1, "f": "print", "p": storetest.Record},
	"an empty text":             {storetest.AnyText: ""},
	"a word":                    {storetest.AnyText: "done"},
	"a state that is none":      {"s": "Z", "t": storetest.Bob1, "f": "print", "n": "1"},
	"a token that is none":      {"s": "A", "t": "fter", "f": "print"},
	"done, without a print":     {"s": "D", "t": storetest.Bob1, "p": storetest.Record},
	"sealed, without a token":   {"s": "U", "f": "print"},
	"running, without a token":  {"s": "R", "f": "print", "n": "1"},
	"running, without a number": {"s": "R", "t": storetest.Bob1, "f": "print"},
	"running, with a number 0":  {"s": "R", "t": storetest.Bob1, "f": "print", "n": "0"},
	"running, with a big one":   {"s": "R", "t": storetest.Bob1, "f": "print", "n": strings.Repeat("9", 20)},
	"running, with a word":      {"s": "R", "t": storetest.Bob1, "f": "print", "n": "one"},
	"reported, with a word":     {"s": "R", "t": storetest.Bob1, "f": "print", "n": "1", "u": "yes"},
	"aborted, without a token":  {"s": "A", "f": "print"},
	"reported, with a letter":   {"s": "R", "t": storetest.Bob1, "f": "print", "n": "1", "u": "y"},
	"with another field":        {storetest.AnyText: "R" + storetest.Bob1 + " 5,1,,,1,1 print"},
	"with a field too few":      {storetest.AnyText: "R" + storetest.Bob1 + " 5,1,, print"},
	"cut in its print":          {storetest.AnyText: "D" + storetest.Bob1 + " 5 prin"},
	"cut in its fields":         {storetest.AnyText: "D" + storetest.Bob1 + " 5"},
	"longer than a text":        {storetest.AnyText: "D" + storetest.Bob1 + " " + strings.Repeat("9", 20) + " print"},
}

// A reader without Lua takes for damaged what the scripts do.
func TestParseRecordRefusesWhatTheScriptsRefuse(t *testing.T) {
	t.Parallel()
	for name, record := range damaged {
		text, isText := record[storetest.AnyText]
		if !isText {
			text = storetest.EncodeRecord(record)
		}
		if got, ok := script.ParseRecord(text, len(text)); ok && record[storetest.AnyHash] == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// damagedRecordTransitions are begins, commits and resolutions with a damaged record. No attempt
// runs, and only an operator changes the record.
func damagedRecordTransitions() (tests []transitionTest) {
	for name, record := range damaged {
		if _, isText := record[storetest.AnyText]; !isText && record[storetest.AnyHash] == "" {
			record = storetest.DecodeRecord(storetest.EncodeRecord(record)) // as a test finds it
		}
		add := func(what string, do transition, before storetest.State, first, second outcome, after storetest.State) {
			tests = append(tests, transitionTest{name: what + ": " + name, do: do, before: before, first: first, second: second, after: after})
		}
		held, left := storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: record}, storetest.State{Record: record}
		sealed := outcome{verdict: store.Unreplayable}
		add("begin with a damaged record", begin(), held, sealed, sealed, left)
		add("begin anew with a damaged record", begin(rerun), held, sealed, sealed, left)
		add("commit with a damaged record", finish(store.EndCommit), held, outcome{status: store.Freed}, outcome{}, left)
		add("seal with a damaged record", finish(store.EndDone), held, outcome{status: store.Freed}, outcome{}, left)
		add("abort with a damaged record", finish(store.EndAbort), held, outcome{status: store.Freed}, outcome{}, left)
		add("renew with a damaged record", renewAttempt, held, outcome{granted: true}, outcome{granted: true}, held)

		marked := storetest.State{Record: hash{"s": "U", "t": "resolved:" + nameOf("")}}
		bobs := storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: record}
		resolved, changed, running := outcome{resolved: store.Resolved}, outcome{resolved: store.Changed}, outcome{resolved: store.StillRunning}
		isDamaged := outcome{read: store.Outcome{State: store.Damaged, Attempt: nameOf("")}}
		isMarked := outcome{read: store.Outcome{State: store.WasDone, Attempt: nameOf("resolved:" + nameOf(""))}}
		add("read a damaged record", readOutcome(storetest.Keep), left, isDamaged, isDamaged, left)
		add("forget a damaged record", resolveAs(store.ResolveNotDone, ""), left, resolved, outcome{}, storetest.State{})
		add("mark a damaged record as done", resolveAs(store.ResolveDone, ""), left, resolved, resolved, marked)
		add("read a damaged record that was marked as done", readOutcome(storetest.Keep), marked, isMarked, isMarked, marked)
		add("begin after a damaged record was marked as done", begin(), marked, sealed, sealed, marked)
		add("answer a damaged record", resolveAs(store.ResolveAnswered, ""), left, changed, changed, left)
		for what, resolution := range resolutions {
			add(what+": a damaged record of another attempt", resolveAs(resolution, storetest.Eve1), left, changed, changed, left)
		}
		add("forget a damaged record while the key is held", resolveAs(store.ResolveNotDone, ""), bobs, running, running, bobs)
	}
	return tests
}

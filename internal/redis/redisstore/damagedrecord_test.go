package redisstore

import (
	"maps"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// damaged are records that no script writes.
var damaged = map[string]hash{
	"no state":                  {"t": storetest.Bob1, "f": "print", "n": "1"},
	"a state that is none":      {"s": "Z", "t": storetest.Bob1, "f": "print", "n": "1"},
	"two states":                {"s": "RD", "t": storetest.Bob1, "f": "print", "n": "1"},
	"done, without an answer":   {"s": "D", "t": storetest.Bob1, "f": "print"},
	"done, without a print":     {"s": "D", "t": storetest.Bob1, "p": storetest.Record},
	"sealed, without a token":   {"s": "U", "f": "print"},
	"running, without a token":  {"s": "R", "f": "print", "n": "1"},
	"running, without a number": {"s": "R", "t": storetest.Bob1, "f": "print"},
	"running, with a number 0":  {"s": "R", "t": storetest.Bob1, "f": "print", "n": "0"},
	"running, with a word":      {"s": "R", "t": storetest.Bob1, "f": "print", "n": "one"},
	"aborted, without a token":  {"s": "A", "f": "print"},
}

// damagedRecordTransitions are begins, commits and resolutions with a damaged record. No attempt
// runs, and only an operator changes the record.
func damagedRecordTransitions() (tests []transitionTest) {
	for name, record := range damaged {
		if name != "done, without an answer" { // an operator sees a request that was done
			tests = append(tests, resolvedDamage(name, record)...)
		}
		for how, change := range map[string]func(*storetest.AnyRequest){"begin": func(*storetest.AnyRequest) {}, "begin anew": rerun} {
			tests = append(tests, transitionTest{
				name: how + " with a damaged record: " + name, do: begin(change),
				before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: record},
				first:  outcome{verdict: store.Sealed}, second: outcome{verdict: store.Sealed},
				after: storetest.State{Record: record},
			})
		}
		if name != "done, without an answer" { // finish.lua does not read the answer
			tests = append(tests, transitionTest{
				name: "commit with a damaged record: " + name, do: finish(store.Commit),
				before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: record},
				first:  outcome{status: store.Freed},
				after:  storetest.State{Record: record},
			})
		}
	}
	return tests
}

// resolvedDamage are what an operator does about a damaged record.
func resolvedDamage(name string, record hash) []transitionTest {
	done := maps.Clone(record)
	delete(done, "n")
	delete(done, "p")
	done["s"], done["t"] = "U", "resolved:"+nameOf(record["t"])
	before := storetest.State{Record: record}
	held := storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: record}
	resolved, changed, running := outcome{resolved: store.Resolved}, outcome{resolved: store.Changed}, outcome{resolved: store.StillRunning}
	return []transitionTest{
		{
			name: "read a damaged record: " + name, do: readOutcome(before.WantRecordTTL()), before: before,
			first:  outcome{read: store.Outcome{State: store.Damaged, Attempt: nameOf(record["t"])}},
			second: outcome{read: store.Outcome{State: store.Damaged, Attempt: nameOf(record["t"])}}, after: before,
		},
		{
			name: "forget a damaged record: " + name, do: resolveAs(store.Forget, record["t"]), before: before,
			first: resolved,
		},
		{
			name: "mark a damaged record as done: " + name, do: resolveAs(store.ResolveDone, record["t"]), before: before,
			first: resolved, second: resolved, after: storetest.State{Record: done},
		},
		{
			name: "read a damaged record that was marked as done: " + name, do: readOutcome(before.WantRecordTTL()), before: storetest.State{Record: done},
			first:  outcome{read: store.Outcome{State: store.WasSealed, Attempt: nameOf(done["t"])}},
			second: outcome{read: store.Outcome{State: store.WasSealed, Attempt: nameOf(done["t"])}}, after: storetest.State{Record: done},
		},
		{
			name: "begin after a damaged record was marked as done: " + name, do: begin(), before: storetest.State{Record: done},
			first: outcome{verdict: store.Sealed}, second: outcome{verdict: store.Sealed}, after: storetest.State{Record: done},
		},
		{
			name: "answer a damaged record: " + name, do: resolveAs(store.ResolveAnswered, record["t"]), before: before,
			first: changed, second: changed, after: before,
		},
		{
			name: "forget a damaged record of another attempt: " + name, do: resolveAs(store.Forget, storetest.Eve1), before: before,
			first: changed, second: changed, after: before,
		},
		{
			name: "forget a damaged record while the key is held: " + name, do: resolveAs(store.Forget, record["t"]), before: held,
			first: running, second: running, after: held,
		},
	}
}

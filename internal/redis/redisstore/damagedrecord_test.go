package redisstore

import (
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
	"running, with a word":      {"s": "R", "t": storetest.Bob1, "f": "print", "n": "one"},
	"aborted, without a token":  {"s": "A", "f": "print"},
}

// damagedRecordTransitions are begins and commits with a damaged record. No attempt runs, and the
// record stays.
func damagedRecordTransitions() (tests []transitionTest) {
	for name, record := range damaged {
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

package conformance

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A testCase is one row of the table.
type testCase struct {
	name  string
	needs feature
	run   func(e *environment)
}

// table returns all cases.
func table() []testCase {
	return slices.Concat(
		refusalCases(),
		keyCases(),
		endingCases(),
		clientCases(),
		nestingCases(),
		waitingCases(),
		streamCases(),
		hookCases(),
		errorPathCases(),
		unlockedCases(),
		eventCases(),
		sharedCases(),
	)
}

// TestTable runs each case on each framework, on each kind of Redis. It logs why a case does
// not apply to a framework.
func TestTable(t *testing.T) {
	t.Parallel()
	runTable(t, table(), frameworks())
}

// runTable runs cases on frameworks, on each kind of Redis, and logs the results as a table. The
// fast tier runs them on one server.
func runTable(t *testing.T, cases []testCase, columns []*framework) {
	t.Helper()
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			kind.SkipRepeats(t)
			results := newReport(kind, cases, columns)
			servers := redistest.Shared(t, kind)
			t.Cleanup(func() { t.Log(results) })
			for _, f := range columns {
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					for _, c := range cases {
						t.Run(c.name, func(t *testing.T) {
							t.Parallel()
							if reason, lacks := f.lack(c.needs); lacks {
								results.set(c.name, f.name, reason)
								t.Log("does not apply: " + reason)
								return
							}
							t.Cleanup(func() { results.set(c.name, f.name, result(t)) })
							c.run(newEnvironment(t, f, servers))
						})
					}
				})
			}
		})
	}
}

// result returns how a case went.
func result(t *testing.T) string {
	if t.Failed() {
		return "FAILED"
	}
	return "ok"
}

// TestTableIsConsistent checks that no two cases share a name, that each case applies to a
// framework, and that a framework lacks only features that a case needs, with a reason.
func TestTableIsConsistent(t *testing.T) {
	t.Parallel()
	cases, columns := append(table(), scenarios()...), frameworks()
	needed := map[feature]bool{}
	names := map[string]bool{}
	for _, c := range cases {
		if names[c.name] {
			t.Errorf("two cases have the name %q", c.name)
		}
		names[c.name], needed[c.needs] = true, true
		if !slices.ContainsFunc(columns, func(f *framework) bool {
			_, lacks := f.lack(c.needs)
			return !lacks
		}) {
			t.Errorf("%q applies to no framework", c.name)
		}
	}
	for _, f := range columns {
		for lacked, reason := range f.lacks {
			if lacked == everywhere || !needed[lacked] || reason == "" {
				t.Errorf("%s lacks %q: %q", f.name, lacked, reason)
			}
		}
	}
}

// A report holds the results of a table on one kind of Redis.
type report struct {
	kind    redistest.Kind
	cases   []testCase
	columns []*framework
	mu      sync.Mutex
	cells   map[[2]string]string
}

func newReport(kind redistest.Kind, cases []testCase, columns []*framework) *report {
	return &report{kind: kind, cases: cases, columns: columns, cells: map[[2]string]string{}}
}

func (r *report) set(name, column, cell string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cells[[2]string{name, column}] = cell
}

// String lists the cases with their results, and below them, for each framework, why some
// cases do not apply.
func (r *report) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text, notes strings.Builder
	fmt.Fprintf(&text, "\n%-60s", r.kind)
	for _, f := range r.columns {
		fmt.Fprintf(&text, " %-16s", f.name)
	}
	for _, c := range r.cases {
		fmt.Fprintf(&text, "\n%-60s", c.name)
		for _, f := range r.columns {
			cell := r.cells[[2]string{c.name, f.name}]
			if reason, lacks := f.lack(c.needs); lacks && cell == reason {
				fmt.Fprintf(&notes, "\n%s, %s: %s", f.name, c.name, reason)
				cell = "-"
			}
			fmt.Fprintf(&text, " %-16s", cell)
		}
	}
	return strings.TrimRight(text.String(), " ") + notes.String()
}

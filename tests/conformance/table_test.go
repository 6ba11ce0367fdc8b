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
	run   func(e *env)
}

// table is all rows.
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
	)
}

// TestTable runs each case on each framework, on each kind of Redis. What does
// not apply to a framework is told with its reason.
//
//faults:row 35, 36: how handlers end and clients go, on each framework and kind of Redis
//faults:row 39: streams and hijacked connections
//faults:row 42: 503 with Retry-After
//faults:row 44: nested keys, and several
func TestTable(t *testing.T) {
	t.Parallel()
	runTable(t, table(), frameworks())
}

// runTable runs cases on frameworks, on each kind of Redis, and tells how each of
// them went.
func runTable(t *testing.T, cases []testCase, columns []*framework) {
	t.Helper()
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			told := newReport(kind, cases, columns)
			servers := kind.Start(t)
			t.Cleanup(func() { t.Log(told) })
			for _, f := range columns {
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					for _, c := range cases {
						t.Run(c.name, func(t *testing.T) {
							t.Parallel()
							if reason, lacks := f.lack(c.needs); lacks {
								told.set(c.name, f.name, reason)
								t.Log("does not apply: " + reason)
								return
							}
							t.Cleanup(func() { told.set(c.name, f.name, result(t)) })
							c.run(newEnv(t, f, servers))
						})
					}
				})
			}
		})
	}
}

// result says how a case went.
func result(t *testing.T) string {
	if t.Failed() {
		return "FAILED"
	}
	return "ok"
}

// TestTableIsWhole sees that no two cases share a name, that each runs
// somewhere, and that frameworks lack only what a case asks for, and say why.
func TestTableIsWhole(t *testing.T) {
	t.Parallel()
	cases, columns := append(table(), scenarios()...), frameworks()
	asked := map[feature]bool{}
	names := map[string]bool{}
	for _, c := range cases {
		if names[c.name] {
			t.Errorf("two cases are called %q", c.name)
		}
		names[c.name], asked[c.needs] = true, true
		if !slices.ContainsFunc(columns, func(f *framework) bool {
			_, lacks := f.lack(c.needs)
			return !lacks
		}) {
			t.Errorf("%q runs nowhere", c.name)
		}
	}
	for _, f := range columns {
		for lacked, reason := range f.lacks {
			if lacked == everywhere || !asked[lacked] || reason == "" {
				t.Errorf("%s lacks %q: %q", f.name, lacked, reason)
			}
		}
	}
}

// A report is the table as it came out on one kind of Redis.
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

// String lists the cases with how they went, and below them, once for each
// framework, why some do not apply.
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

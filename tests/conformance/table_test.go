// Package conformance checks that all adapters behave alike: its tables of cases run over net/http,
// Gin, Echo, Fiber, gRPC and Connect, with the same core, a real redis-server and real connections. README.md
// says what is proved, and how to add a case.
//
// This package has no code but its tests.
package conformance

import (
	"slices"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode) // otherwise it prints each route
	suite.Parallel(32)
	suite.Main(m, suite.Fasthttp()...)
}

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
		detachCases(),
		handoverCases(),
	)
}

// TestTable runs each case on each framework, on each kind of Redis. It logs why a case does
// not apply to a framework.
func TestTable(t *testing.T) {
	t.Parallel()
	runTable(t, table(), frameworks())
}

// runTable runs cases on frameworks, on each kind of Redis. The fast tier runs them on one server.
func runTable(t *testing.T, cases []testCase, columns []*framework) {
	t.Helper()
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			kind.SkipRepeats(t)
			servers := redistest.Shared(t, kind)
			for _, f := range columns {
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					for _, c := range cases {
						t.Run(c.name, func(t *testing.T) {
							t.Parallel()
							if reason, lacks := f.lack(c.needs); lacks {
								t.Log("does not apply: " + reason)
								return
							}
							c.run(newEnvironment(t, f, servers))
						})
					}
				})
			}
		})
	}
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

// scenarios are the ways in which idempotent endpoints fail.
func scenarios() []testCase {
	return slices.Concat(
		keyScenarios(),
		scopeScenarios(),
		fingerprintScenarios(),
		bodyScenarios(),
		concurrencyScenarios(),
		replayScenarios(),
		headerScenarios(),
		statusScenarios(),
		endingScenarios(),
		insideScenarios(),
		streamScenarios(),
		leaseScenarios(),
		operatorScenarios(),
		sealedScenarios(),
		faultScenarios(),
		eventScenarios(),
		referenceScenarios(),
		handoverScenarios(),
	)
}

// TestScenarios runs each scenario on each HTTP framework.
func TestScenarios(t *testing.T) {
	t.Parallel()
	var columns []*framework
	for _, f := range frameworks() {
		if f.endpoint != nil {
			columns = append(columns, f)
		}
	}
	runTable(t, scenarios(), columns)
}

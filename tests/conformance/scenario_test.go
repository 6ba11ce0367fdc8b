package conformance

import (
	"slices"
	"testing"
)

// scenarios are all that is known to go wrong with idempotent endpoints, as rows
// of a table. Those that are told elsewhere, or nowhere, are in elsewhere_test.go.
func scenarios() []testCase {
	return slices.Concat(
		keyScenarios(),
		scopeScenarios(),
		fingerprintScenarios(),
		bodyScenarios(),
		crowdScenarios(),
		replayScenarios(),
		headerScenarios(),
		statusScenarios(),
		endingScenarios(),
		streamScenarios(),
		crashScenarios(),
		faultScenarios(),
	)
}

// TestScenarios runs each scenario on each HTTP framework.
//
//faults:row 45, 46: attempts that die or lose their lease, on each framework and kind of Redis
//faults:row 38, 48: flushed, hijacked and long answers
//faults:row 47: Redis goes down while the handler runs
//faults:row 49: other payloads, users and routes, and a hundred copies at once
//faults:row 50: statuses, headers, trailers, panics
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

// TestElsewhereIsWhole sees that no scenario is told to be elsewhere and is in the
// table, and that each has its reason.
func TestElsewhereIsWhole(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, c := range scenarios() {
		names[c.name] = true
	}
	for _, s := range elsewhere {
		if names[s.scenario] || s.why == "" {
			t.Errorf("%q is a scenario of the table as well, or has no reason", s.scenario)
		}
	}
}

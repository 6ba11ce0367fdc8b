package conformance

import (
	"slices"
	"testing"
)

// scenarios are all known ways in which idempotent endpoints fail. Those without a row are in
// coveredElsewhere.
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
		streamScenarios(),
		leaseScenarios(),
		operatorScenarios(),
		faultScenarios(),
		eventScenarios(),
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

// TestCoveredElsewhereIsConsistent checks that no scenario of coveredElsewhere is also a row of
// the table, and that each has its reason.
func TestCoveredElsewhereIsConsistent(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, c := range scenarios() {
		names[c.name] = true
	}
	for _, s := range coveredElsewhere {
		if names[s.scenario] || s.why == "" {
			t.Errorf("%q is a scenario of the table as well, or has no reason", s.scenario)
		}
	}
}

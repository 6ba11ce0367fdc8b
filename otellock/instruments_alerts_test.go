package otellock_test

import (
	"os/exec"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// TestAlertRules runs the unit tests of the alerts. It needs promtool of Prometheus: where that is
// not installed the test is skipped, or fails if REQLOCK_REQUIRE_REDIS is set.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		suite.SkipOrFail(t, "%v", err)
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = "grafana"
		if said, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, said)
		}
	}
}

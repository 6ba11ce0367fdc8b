package campaign

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

func TestMain(m *testing.M) {
	if code, client := traffic.Main(); client {
		os.Exit(code)
	}
	suite.Main(m)
}

// fakeCampaign returns a campaign whose runs are replaced by a function.
func fakeCampaign(t *testing.T, execute func(Run) *Report) (*campaign, *bytes.Buffer) {
	t.Helper()
	output := &bytes.Buffer{}
	return &campaign{
		settings: Settings{Parallel: 3, Out: t.TempDir(), Seed: 7, On: fault.Deployments(), Names: regexp.MustCompile("")},
		w:        output, table: Table{},
		runOne: func(_ context.Context, r Run) *Report {
			report := execute(r)
			report.Run = r
			return report
		},
	}, output
}

// A run that fails, in the control or after it, fails the campaign.
func TestFailedRunFailsCampaign(t *testing.T) {
	blind, _ := fakeCampaign(t, func(Run) *Report { return &Report{History: &history.History{}} })
	blind.settings.Mode = Short
	if failed, err := blind.runPlan(t.Context()); !failed && err == nil {
		t.Error("a control that loses no update does not fail")
	}
	lostUpdate := &history.History{Accesses: []history.Access{{Key: "k", Write: true}, {Key: "k", Write: true}}}
	for name, test := range map[string]struct {
		report Report
		failed bool
	}{
		"no violation":      {Report{History: &history.History{}}, false},
		"a violation":       {Report{History: &history.History{}, Violations: []validate.Violation{{Check: "limit"}}}, true},
		"a run that failed": {Report{Failed: true, Log: "no port"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, inControl := range []bool{false, true} {
				c, output := fakeCampaign(t, func(r Run) *Report {
					if r.Careless != inControl || !test.failed && r.Careless {
						return &Report{History: lostUpdate}
					}
					report := test.report
					return &report
				})
				c.settings.Mode = Short
				if failed, err := c.runPlan(t.Context()); failed != test.failed || err != nil {
					t.Errorf("in the control %v: failed %v, %v\n%s", inControl, failed, err, output)
				}
			}
		})
	}
}

func TestShortPlanHasEachFaultOfAServer(t *testing.T) {
	executed, sums := map[string]bool{}, map[fault.Deployment]int{}
	for _, r := range shortPlan(fault.All(), fault.Deployments(), 9) {
		sums[r.On]++
		executed[r.Fault.Name] = executed[r.Fault.Name] || r.On == fault.OnServer
	}
	for _, f := range fault.All() {
		if slices.Contains(f.On, fault.OnServer) && !executed[f.Name] {
			t.Errorf("%s is not executed on a server", f.Name)
		}
	}
	for _, kind := range fault.Deployments() {
		if sums[kind] == 0 {
			t.Errorf("nothing is executed on %s", kind)
		}
	}
}

// A command line that executes nothing must not pass for one that found nothing.
func TestNothingToRunIsAnError(t *testing.T) {
	for _, line := range []string{"-run nothing-is-called-so", "-short -run nothing-is-called-so", "-short -long", "-count 0", "-on moon", "-on server,moon", "-validate none.json", "-colour"} {
		if code := Main(t.Context(), &bytes.Buffer{}, strings.Fields(line)); code != exitUsage {
			t.Errorf("%s: exit code %d", line, code)
		}
	}
	t.Setenv("REQLOCK_REDIS_SERVER", "")
	t.Setenv("PATH", t.TempDir())
	if code := Main(t.Context(), &bytes.Buffer{}, []string{"-short"}); code != exitUsage {
		t.Errorf("without redis-server: exit code %d", code)
	}
}

// A loss excuses a second holder, so it concerns no more keys than were lost.
func TestLossConcernsLostKeys(t *testing.T) {
	keys := map[string]string{"p:b": "b", "p:a": "a", "p:i:c": "c"}
	for name, test := range map[string]struct {
		lost fault.Loss
		keys []string
		loss bool
	}{
		"nothing":         {nil, nil, false},
		"everything":      {func(string) bool { return true }, nil, true},
		"some of them":    {func(name string) bool { return name != "p:i:c" }, []string{"a", "b"}, true},
		"only other keys": {func(string) bool { return false }, nil, false},
	} {
		var d disruptions
		d.begin("a", test.lost)()
		if got := d.all(keys)[0]; got.Loss != test.loss || !slices.Equal(got.Keys, test.keys) || got.To < got.From || got.From == 0 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

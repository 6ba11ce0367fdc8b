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

func TestControlMustLoseUpdates(t *testing.T) {
	write := func(version int64) history.Access { return history.Access{Key: "k", Write: true, Version: version} }
	fenced := func(version int64) history.Access {
		return history.Access{Key: "k", Fenced: true, Write: true, Version: version}
	}
	for name, test := range map[string]struct {
		accesses []history.Access
		want     string // in the error; "" for none
	}{
		"an update is lost":                   {[]history.Access{write(0), write(0)}, ""},
		"no update is lost":                   {[]history.Access{write(0), write(1)}, "would not see"},
		"an update is lost despite its fence": {[]history.Access{write(0), write(0), fenced(0), fenced(0)}, "not what was found"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := fakeCampaign(t, func(r Run) *Report {
				h := &history.History{Accesses: test.accesses, Careless: r.Careless, TTL: 1, Ended: 1}
				return &Report{History: h, Violations: validate.All(h)}
			})
			if err := c.control(t.Context()); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A run that fails, in the control or after it, fails the campaign.
func TestFailedRunFailsCampaign(t *testing.T) {
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
	for _, line := range []string{"-run nothing-is-called-so", "-short -run nothing-is-called-so", "-short -long", "-count 0", "-on moon", "-validate none.json", "-colour"} {
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

// Without a time of recovery, no call is found that waits for ever.
func TestFaultThatFailedHasRecovered(t *testing.T) {
	const begun = 1
	var nothing, healed, unhealed disruptions
	healed.begin("a", nil)()
	unhealed.begin("a", nil)
	if got := nothing.recoveredAt(begun); got != begun {
		t.Errorf("without a disruption: %d", got)
	}
	if got, want := healed.recoveredAt(begun), healed.all(nil)[0].To; got != want {
		t.Errorf("after a disruption: %d, want %d", got, want)
	}
	if got := unhealed.recoveredAt(begun); got != 0 {
		t.Errorf("during a disruption: %d", got)
	}
}

package compare

import (
	"math"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/bench/internal/report"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestGoalIsComparedWithTheBestAnchor(t *testing.T) {
	runs := make(map[string][][]report.Figure)
	for name, value := range map[string]float64{"ours": 100, "fast": 60, "slow": 40, "starved": math.Inf(1)} {
		runs[name] = [][]report.Figure{{{Name: "rate", Value: value, Text: report.Number}}}
	}
	results := []*Results{{Suite{Name: "has run"}, runs}}
	fast, both := []Cell{{Contestant: "fast"}}, []Cell{{Contestant: "slow"}, {Contestant: "fast"}}
	for want, g := range map[string]Goal{
		"100 fast 60.0 1.67x >= 2x missed":     {Anchors: both, Times: 2},
		"100 fast 60.0 1.67x >= 1.5x held":     {Anchors: both, Times: 1.5},
		"100 slow 40.0 2.5x <= 2x + 20.0 held": {Anchors: both, Times: 2, Plus: 20, AtMost: true},
		"100 fast 60.0 1.67x <= 99.0 missed":   {Anchors: fast, Plus: 99, AtMost: true},
		"100 fast 60.0 1.67x":                  {Anchors: fast},
		"100 absent - - >= 1x missed":          {Anchors: []Cell{{Contestant: "absent"}}, Times: 1},
		"100 starved - - <= 1x missed":         {Anchors: []Cell{{Contestant: "starved"}}, Times: 1, AtMost: true},
		"100 fast in not run - - <= 100 held":  {Anchors: []Cell{{"not run", "fast", ""}}, Plus: 100, AtMost: true},
	} {
		var out strings.Builder
		g.Case, g.Reached = "goal", Cell{"has run", "ours", "rate"}
		PrintGoals(&out, []Goal{g, {Case: "not run"}}, results)
		if lines := strings.Split(out.String(), "\n"); strings.Join(strings.Fields(lines[2]), " ") != "goal rate "+want || len(lines) != 5 {
			t.Errorf("want %q:\n%s", want, &out)
		}
	}
}

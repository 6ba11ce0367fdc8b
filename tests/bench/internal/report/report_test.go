package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/bench/internal/compare"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestVerdicts(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		rule              rule
		ours, other, goal float64
		measured, verdict string
	}{
		"more":               {timesMore, 300, 10, 25, "30.0x", "reached"},
		"just enough":        {timesMore, 250, 10, 25, "25.0x", "reached"},
		"not enough":         {timesMore, 200, 10, 25, "20.0x", "missed by 20.0 %"},
		"less":               {timesLess, 10, 80, 3, "8.00x", "reached"},
		"not less enough":    {timesLess, 10, 15, 3, "1.50x", "missed by 50.0 %"},
		"high enough":        {atLeast, 0.99, nan, 0.98, "0.99", "reached"},
		"too low":            {atLeast, 0.49, nan, 0.98, "0.49", "missed by 50.0 %"},
		"low enough":         {atMost, 0.04, nan, 0.05, "0.0400", "reached"},
		"too high":           {atMost, 0.1, nan, 0.05, "0.10", "missed by 100 %"},
		"little more":        {atMostMore, 29, 22, 8, "7.00", "reached"},
		"too much more":      {atMostMore, 34, 22, 8, "12.0", "missed by 50.0 %"},
		"ours was not run":   {timesMore, nan, 10, 25, "-", "not run"},
		"theirs was not run": {timesLess, 10, nan, 25, "-", "not run"},
		"neither was run":    {atMost, nan, nan, 25, "-", "not run"},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.rule.evaluate(c.ours, c.other, c.goal)
			if got := c.rule.measured(v); got != c.measured {
				t.Errorf("measured %q, want %q", got, c.measured)
			}
			if got := v.String(); got != c.verdict {
				t.Errorf("verdict %q, want %q", got, c.verdict)
			}
		})
	}
}

// results returns two repetitions of a suite with two locks, and one with another setting
// of rueidislock.
func results() *Results {
	run := func(name lock.Name, repetition int, rate float64) compare.Run {
		return compare.Run{Suite: compare.Hot, Lock: name, Repetition: repetition, HandoffsPerSecond: rate}
	}
	return &Results{Comparisons: []compare.Run{
		run(lock.Reqlock, 1, 1000), run(lock.Rueidislock, 1, 10),
		run(lock.Reqlock, 2, 3000), run(lock.Rueidislock, 2, 30),
		run(lock.RueidislockNoLoop, 1, 40),
	}}
}

func TestMediansAndTheBetterSetting(t *testing.T) {
	r := results()
	if got := r.median(compare.Hot, lock.Reqlock, handoffsPerSecond); got != 2000 {
		t.Errorf("the median is %v", got)
	}
	both := []lock.Name{lock.Rueidislock, lock.RueidislockNoLoop}
	if got := r.highest(compare.Hot, handoffsPerSecond, both...); got != 40 {
		t.Errorf("the highest is %v", got)
	}
	if got := r.lowest(compare.Hot, handoffsPerSecond, both...); got != 20 {
		t.Errorf("the lowest is %v", got)
	}
	if got := r.highest(compare.Hot, handoffsPerSecond, lock.Redsync); !math.IsNaN(got) {
		t.Errorf("of a lock that did not run the highest is %v", got)
	}
}

// There is a row for each target, even if nothing ran.
func TestTargetsArePrinted(t *testing.T) {
	var b strings.Builder
	results().PrintTargets(&b)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if got, want := len(lines), len(targets())+2; got != want {
		t.Fatalf("%d lines, want %d:\n%s", got, want, b.String())
	}
	if first := lines[2]; !strings.Contains(first, "50.0x") || !strings.HasSuffix(first, "reached") {
		t.Errorf("25 times rueidislock's better setting is printed as %q", first)
	}
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, "not run") {
		t.Errorf("what did not run is printed as %q", last)
	}
}

func TestRawRunsAreJSON(t *testing.T) {
	r := results()
	r.Comparisons[0].Jain = compare.Number(math.NaN())
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if runs := back["Comparisons"].([]any); len(runs) != 5 {
		t.Errorf("%d runs", len(runs))
	}
}

func TestFaultsArePrinted(t *testing.T) {
	r := &Results{Comparisons: []compare.Run{
		{Suite: compare.Hot, Lock: lock.Redsync, Violations: 2, Stuck: 3, Faults: []string{"broken"}},
	}}
	var b strings.Builder
	for _, s := range compare.Suites() {
		if s.Name == compare.Hot {
			r.PrintComparison(&b, s)
		}
	}
	for _, want := range []string{"TOO MANY HOLDERS AT ONCE, 2 times", "3 waiters", "the first: broken"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if r.Violations() != 2 {
		t.Errorf("%d violations", r.Violations())
	}
}

func TestFreeLocksAreHeldAgainstReqlock(t *testing.T) {
	r := &Results{Comparisons: []compare.Run{
		{Suite: compare.Cluster, Lock: lock.Reqlock, LocksPerSecond: 3000},
		{Suite: compare.Cluster, Lock: lock.Redislock, LocksPerSecond: 500},
	}}
	var b strings.Builder
	for _, s := range compare.Suites() {
		if s.Name == compare.Cluster {
			r.PrintComparison(&b, s)
		}
	}
	rows := make(map[string][]string)
	for line := range strings.Lines(b.String()) {
		if cells := strings.Fields(line); len(cells) > 2 && cells[1] != "plain" {
			rows[cells[0]] = cells[1:3]
		}
	}
	for name, want := range map[lock.Name]string{
		lock.Reqlock: "3,000 1.00x", lock.Redislock: "500 6.00x", lock.Redsync: "- -",
	} {
		if got := strings.Join(rows[string(name)], " "); got != want {
			t.Errorf("the row of %s begins with %q, want %q:\n%s", name, got, want, b.String())
		}
	}
}

func TestFiguresAreRoundedAndHaveUnits(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{number(0), "0"},
		{number(0.0345), "0.0345"},
		{number(0.5), "0.50"},
		{number(12.34), "12.3"},
		{number(123.4), "123"},
		{number(999.6), "1000"},
		{number(1234567), "1,234,567"},
		{number(-1234), "-1,234"},
		{number(math.NaN()), "-"},
		{thousands(100), "100"},
		{thousands(1000), "1,000"},
		{duration(12.3), "12.3 µs"},
		{duration(1234), "1.23 ms"},
		{duration(2_500_000), "2.50 s"},
		{duration(math.Inf(1)), "-"},
		{size(100.4), "100 B"},
		{size(20480), "20.0 KiB"},
		{size(math.NaN()), "-"},
		{times(2.345), "2.35x"},
		{times(math.NaN()), "-"},
		{times(math.Inf(1)), "-"},
		{percent(0.5), "50.0 %"},
		{percent(math.NaN()), "-"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestTableIsAligned(t *testing.T) {
	table := newTable("lock", "rate")
	table.row("µ", "1")
	table.row("longer", "1,234")
	var b strings.Builder
	table.print(&b)
	want := "lock     rate\n------  -----\nµ           1\nlonger  1,234\n\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestChartsAreWritten(t *testing.T) {
	dir := t.TempDir()
	if err := results().WriteCharts(dir); err != nil {
		t.Fatal(err)
	}
	c := results().chartOf(chartSpecs()[0])
	if len(c.Bars) != 3 || !c.Bars[0].Highlight || c.Bars[1].Highlight || c.Bars[0].Value != 2000 {
		t.Errorf("the chart is %+v", c)
	}
}

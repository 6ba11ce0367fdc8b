package campaign

import (
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// nanoseconds returns a time of a history, from milliseconds.
func nanoseconds(n int64) int64 { return n * time.Millisecond.Nanoseconds() }

// granted is a call that was granted at a time.
func granted(at int64) history.Op {
	return history.Op{Kind: history.Lock, Key: "k", Call: at, Return: at, Outcome: history.Granted}
}

func TestTheLongestTimeWithoutAGrant(t *testing.T) {
	for name, c := range map[string]struct {
		ops  []history.Op
		want time.Duration
	}{
		"none":              {nil, 0},
		"before the first":  {[]history.Op{granted(nanoseconds(90)), granted(nanoseconds(100))}, 80 * time.Millisecond},
		"in between":        {[]history.Op{granted(nanoseconds(20)), granted(nanoseconds(100))}, 80 * time.Millisecond},
		"in another order":  {[]history.Op{granted(nanoseconds(100)), granted(nanoseconds(50)), granted(nanoseconds(20))}, 50 * time.Millisecond},
		"a refusal is none": {[]history.Op{granted(nanoseconds(20)), {Return: nanoseconds(30), Outcome: history.Busy}, granted(nanoseconds(60))}, 40 * time.Millisecond},
	} {
		if got := longestPause(&history.History{Begun: nanoseconds(10), Ops: c.ops}); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestTheTableSumsUp(t *testing.T) {
	table := Table{}
	h := &history.History{Ops: []history.Op{granted(1), {}}, Disruptions: []history.Disruption{{Loss: true}, {}}}
	table.add(&Report{Run: Run{On: fault.OnServer}, History: h})
	table.add(&Report{Run: Run{On: fault.OnServer}, History: h, Violations: make([]validate.Violation, 3)})
	table.add(&Report{Run: Run{On: fault.OnCluster}, Failed: true})
	if got, want := *table[fault.OnServer], (Totals{Histories: 2, Ops: 4, Grants: 2, Losses: 2, Violations: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := *table[fault.OnCluster], (Totals{Failed: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	lines := strings.Split(strings.TrimSpace(table.String()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "server") || !strings.HasPrefix(lines[2], "cluster") {
		t.Errorf("got\n%s", table)
	}
}

func TestTheLineOfARunSaysHowItWent(t *testing.T) {
	run := Run{Fault: fault.Fault{Name: "f"}, On: fault.OnSentinels, Seed: 12}
	h := &history.History{}
	for want, r := range map[string]Report{
		" ok":                     {History: h},
		" 2 violations":           {History: h, Violations: make([]validate.Violation, 2), Failed: true},
		" FAILED":                 {History: h, Failed: true},
		" skipped":                {Skipped: true},
		"before there was a hist": {Failed: true},
	} {
		r.Run = run
		line := r.String()
		if !strings.Contains(line, want) || !strings.Contains(line, "sentinels") || !strings.Contains(line, "seed 12") {
			t.Errorf("got %q, want %q in it", line, want)
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	if got := indent("a\n\nb\n"); got != "    a\n    b\n" {
		t.Errorf("got %q", got)
	}
	if got := indent(strings.Repeat("x\n", 100)); strings.Count(got, "\n") != 41 || !strings.Contains(got, "60 lines more") {
		t.Errorf("got %q", got)
	}
}

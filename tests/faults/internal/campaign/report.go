package campaign

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// A Report is the result of a run.
type Report struct {
	Run        Run
	History    *history.History // nil if the run failed before its end
	Violations []validate.Violation
	// Failed is set if the run itself failed. Log says why.
	Failed, Skipped bool
	Log             string
	ServerLogs      map[string][]byte // by the file names to keep them under
	Took            time.Duration
}

// isFailure reports whether the run must be examined.
func (r *Report) isFailure() bool { return r.Failed || len(r.Violations) > 0 }

// grantTimes returns the times at which clients were granted leases, sorted.
func grantTimes(h *history.History) []int64 {
	var at []int64
	for _, op := range h.Ops {
		if op.Outcome == history.Granted && op.Return != 0 {
			at = append(at, op.Return)
		}
	}
	for _, d := range h.FastLeases {
		at = append(at, d.Return)
	}
	slices.Sort(at)
	return at
}

// longestPause returns the longest time without a grant, from the beginning.
func longestPause(h *history.History) time.Duration {
	last, longest := h.Begun, int64(0)
	for _, at := range grantTimes(h) {
		longest, last = max(longest, at-last), max(last, at)
	}
	return time.Duration(longest)
}

// losses returns the number of declared losses of data.
func losses(h *history.History) int {
	n := 0
	for _, t := range h.Disruptions {
		if t.Loss {
			n++
		}
	}
	return n
}

// String returns the line of the run.
func (r *Report) String() string {
	head := fmt.Sprintf("%-45s %-18s seed %-10d", r.Run.Fault.Name, r.Run.On.String(), r.Run.Seed)
	tail := fmt.Sprintf("%6.1fs", r.Took.Seconds())
	switch {
	case r.Skipped:
		return head + " skipped"
	case r.History == nil:
		return head + " FAILED before there was a history " + tail
	}
	state := "ok"
	switch {
	case len(r.Violations) > 0:
		state = fmt.Sprintf("%d violations", len(r.Violations))
	case r.Failed:
		state = "FAILED"
	}
	return fmt.Sprintf("%s %6d ops %6d grants %6dms without  %s %s",
		head, len(r.History.Ops), len(grantTimes(r.History)), longestPause(r.History).Milliseconds(), tail, state)
}

// Totals are the sums of the runs on one deployment.
type Totals struct{ Histories, Failed, Ops, Grants, Violations, Losses int }

func (t *Totals) add(r *Report) {
	if r.Failed {
		t.Failed++
	}
	t.Violations += len(r.Violations)
	if h := r.History; h != nil {
		t.Histories++
		t.Ops += len(h.Ops)
		t.Grants += len(grantTimes(h))
		t.Losses += losses(h)
	}
}

// A Table has the sums of a campaign for each deployment.
type Table map[fault.Deployment]*Totals

func (t Table) add(r *Report) {
	if t[r.Run.On] == nil {
		t[r.Run.On] = &Totals{}
	}
	t[r.Run.On].add(r)
}

func (t Table) String() string {
	text := fmt.Sprintf("%-20s%10s%10s%10s%10s%10s%12s\n", "", "histories", "ops", "grants", "losses", "failed", "violations")
	for _, kind := range fault.Deployments() {
		if n := t[kind]; n != nil {
			text += fmt.Sprintf("%-20s%10d%10d%10d%10d%10d%12d\n",
				kind.String(), n.Histories, n.Ops, n.Grants, n.Losses, n.Failed, n.Violations)
		}
	}
	return text
}

// indent indents the lines of a text, and omits lines after the first forty.
func indent(text string) string {
	const most = 40
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var out strings.Builder
	for i, line := range lines {
		switch {
		case line == "":
		case i == most:
			fmt.Fprintf(&out, "    ... and %d lines more\n", len(lines)-most)
			return out.String()
		default:
			fmt.Fprintf(&out, "    %s\n", line)
		}
	}
	return out.String()
}

package campaign

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

// historyFile is the name of a kept history. ViolationsFile is the name of the list of its
// violations, one on each line.
const (
	historyFile    = "history.json"
	ViolationsFile = "violations.txt"
)

// newDir creates a directory below out with this name. If it exists, newDir adds a number:
// it never changes what an earlier run has kept.
func newDir(out, name string) (dir string, err error) {
	if err := os.MkdirAll(out, 0o750); err != nil {
		return "", err
	}
	dir = filepath.Join(out, name)
	for n := 2; ; n++ {
		err := os.Mkdir(dir, 0o750)
		if !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
		dir = filepath.Join(out, fmt.Sprintf("%s-%d", name, n))
	}
}

// keep writes all that is known of a run into a directory of its own below out, and returns
// that directory.
func (r *Report) keep(out string) (dir string, err error) {
	dir, err = newDir(out, r.Run.Name())
	if err != nil {
		return dir, err
	}
	var failures []error
	write := func(name string, text []byte) {
		failures = append(failures, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	if r.History != nil {
		failures = append(failures, r.History.Save(filepath.Join(dir, historyFile)))
	}
	write(ViolationsFile, []byte(lines(r.Violations)))
	write("run.log", []byte(r.Log))
	for name, text := range r.ServerLogs {
		write(name, text)
	}
	failures = append(failures, draw(r.Violations, dir))
	return dir, errors.Join(failures...)
}

// lines returns the violations, one on each line.
func lines(violations []validate.Violation) string {
	var lines strings.Builder
	for _, f := range violations {
		fmt.Fprintln(&lines, strings.ReplaceAll(f.String(), "\n", " "))
	}
	return lines.String()
}

// draw draws the violations that have a picture into the directory.
func draw(violations []validate.Violation, dir string) error {
	var failures []error
	for i, f := range violations {
		if f.Picture != nil {
			failures = append(failures, f.Picture(filepath.Join(dir, fmt.Sprintf("%d-%s.html", i+1, f.Check))))
		}
	}
	return errors.Join(failures...)
}

// keepServerLogs reads the logs of the servers after they have ended. Call it before the
// servers are started: cleanups run in reverse order.
func (r *Report) keepServerLogs(tb testing.TB) {
	tb.Helper()
	root := filepath.Dir(tb.TempDir()) // the directory of each server is a sibling of this one
	tb.Cleanup(func() {
		r.ServerLogs = make(map[string][]byte)
		paths, err := filepath.Glob(filepath.Join(root, "*", "redis-server.log"))
		if err != nil {
			tb.Error(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path) //nolint:gosec // a server of ours has written it
			if err != nil {
				tb.Error(err)
			}
			r.ServerLogs["server-"+filepath.Base(filepath.Dir(path))+".log"] = text
		}
	})
}

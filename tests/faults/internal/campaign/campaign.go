package campaign

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
)

// A campaign is a number of runs, and their sums. It is safe for concurrent use.
type campaign struct {
	settings Settings
	runOne   func(ctx context.Context, r Run) *Report // executes one run

	mu     sync.Mutex
	w      io.Writer
	table  Table
	failed bool // a run found a violation or failed
}

// record prints and counts a run. It ignores an interrupted one.
func (c *campaign) record(r *Report, interrupted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if interrupted {
		return
	}
	fmt.Fprintln(c.w, r)
	if r.Skipped {
		fmt.Fprint(c.w, indent(r.Log))
		return
	}
	c.table.add(r)
	if !r.isFailure() {
		return
	}
	c.failed = true
	c.reportFailure(r)
}

// reportFailure prints the violations of a run, and keeps the run in a directory.
func (c *campaign) reportFailure(r *Report) {
	fmt.Fprint(c.w, indent(lines(r.Violations)))
	if r.Failed {
		fmt.Fprint(c.w, indent(r.Log))
	}
	dir, err := r.keep(c.settings.Out)
	if err != nil {
		fmt.Fprintf(c.w, "    not all of it could be kept: %v\n", err)
	}
	fmt.Fprintf(c.w, "    kept in        %s\n    run again      %s\n", dir, r.Run.Command(c.settings.Out))
	if r.History != nil {
		fmt.Fprintf(c.w, "    validate again %s\n", commandLine("-validate", filepath.Join(dir, historyFile)))
	}
}

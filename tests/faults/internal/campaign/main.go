// Package campaign injects faults into deployments of the lock, and validates the
// histories.
//
// A run is one fault on one deployment with one seed, which determines all random choices.
// A run starts its own servers, a network in front of them and client processes, injects
// the fault, waits until the system has recovered, and validates what the clients called
// and what was returned to them. If a run finds a violation, it is kept in a directory,
// with the commands to validate it and to run it again.
//
// There are three plans: a short one for each change, a long one for a night, and runs by name.
package campaign

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// The exit codes of Main.
const (
	exitOK     = 0
	exitFailed = 1 // a violation, a failed run, or an interruption
	exitUsage  = 2
)

// Main executes a command line until ctx ends. It prints to w, and returns the exit code of
// the program.
func Main(ctx context.Context, w io.Writer, args []string) (code int) {
	s, err := Parse(w, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	if s.Mode != Validate && !redistest.IsInstalled() {
		fmt.Fprintln(w, "the campaign starts servers of its own: install redis-server, or set REQLOCK_REDIS_SERVER to the path of one")
		return exitUsage
	}
	failed := false
	switch s.Mode {
	case Validate:
		failed, err = validateFile(w, s.History)
	case ByName, Short, Long:
		c := &campaign{settings: s, runOne: runFault, w: w, table: Table{}}
		failed, err = c.runPlan(ctx)
	}
	if err != nil {
		fmt.Fprintln(w, err)
		return exitUsage
	}
	if ctx.Err() != nil {
		fmt.Fprintln(w, "interrupted")
		failed = true
	}
	if failed {
		return exitFailed
	}
	return exitOK
}

// runPlan executes the runs of the settings.
func (c *campaign) runPlan(ctx context.Context) (failed bool, err error) {
	s := c.settings
	faults := fault.All() //nolint:contextcheck // a fault is executed with the context of its System
	runs := s.plan(faults)
	if len(runs) == 0 {
		return true, fmt.Errorf("no fault that is called like %q can happen there", s.Names)
	}
	fmt.Fprintln(c.w, s.announce(len(runs)))
	if s.Mode == Short || s.Mode == Long {
		if err := c.control(ctx); err != nil {
			fmt.Fprintf(c.w, "%v\n    run again      %s\n", err, s.command())
			return true, nil
		}
	}
	begun := time.Now()
	more := func() bool { return s.Mode != Long || time.Since(begun) < s.For }
	c.run(ctx, runs, more)
	for s.Mode == Long && more() && ctx.Err() == nil {
		s.Seed = uint64(rand.Uint32()) //nolint:gosec // not a secret
		c.run(ctx, s.plan(faults), more)
	}
	fmt.Fprintf(c.w, "\n%sin %v\n", c.table, time.Since(begun).Round(time.Second))
	return c.failed, nil
}

// validateFile validates a kept history again, prints the violations to w, and draws them
// into the directory of the file.
func validateFile(w io.Writer, path string) (found bool, err error) {
	h, err := history.Load(path)
	if err != nil {
		return false, err
	}
	violations := validate.All(h)
	fmt.Fprintf(w, "%s on %s, seed %d: %d ops, %d grants, %d violations\n",
		h.Name, h.Deployment, h.Seed, len(h.Ops), len(grantTimes(h)), len(violations))
	fmt.Fprint(w, lines(violations))
	return len(violations) > 0, draw(violations, filepath.Dir(path))
}

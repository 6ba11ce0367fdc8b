package campaign

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
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

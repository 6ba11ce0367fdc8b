package campaign

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
)

// The exit codes of Main.
const (
	fine    = 0
	found   = 1 // something was found, or a run went wrong, or was interrupted
	misused = 2
)

// Main does what the command line says until ctx ends, tells w of it, and returns
// the code with which the program is to exit.
func Main(ctx context.Context, w io.Writer, args []string) (code int) {
	s, err := Parse(w, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return fine
	case err != nil:
		return misused
	}
	if _, err := exec.LookPath("redis-server"); err != nil && s.Mode != Judge {
		fmt.Fprintf(w, "the campaign starts servers of its own: %v\n", err)
		return misused
	}
	bad := false
	switch s.Mode {
	case Judge:
		bad, err = judge(w, s.Judge)
	case Mutants:
		bad, err = hunt(ctx, w, s)
	case ByName, Short, Long:
		c := &campaign{settings: s, play: play, w: w, table: Table{}}
		bad, err = c.playAll(ctx)
	}
	if err != nil {
		fmt.Fprintln(w, err)
		return misused
	}
	if ctx.Err() != nil {
		fmt.Fprintln(w, "interrupted")
		bad = true
	}
	if bad {
		return found
	}
	return fine
}

// playAll plays the runs that the settings say.
func (c *campaign) playAll(ctx context.Context) (bad bool, err error) {
	s := c.settings
	faults := fault.All() //nolint:contextcheck // a fault is played with the context of its scene
	runs := s.plan(faults)
	if len(runs) == 0 {
		return true, fmt.Errorf("no fault that is called like %q can happen there", s.Names)
	}
	fmt.Fprintln(c.w, s.announce(len(runs)))
	if s.Mode == Short || s.Mode == Long {
		if err := c.control(ctx); err != nil {
			fmt.Fprintf(c.w, "%v\n    play again  %s\n", err, s.again())
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
	return c.bad, nil
}

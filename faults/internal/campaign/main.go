package campaign

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/reqlock/reqlock/faults/internal/fault"
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
	bad := false
	switch s.Mode {
	case Judge:
		bad, err = judge(w, s.Judge)
	case Mutants:
		bad, err = hunt(ctx, w, s)
	case ByName, Short, Long:
		bad, err = playAll(ctx, w, s)
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
func playAll(ctx context.Context, w io.Writer, s Settings) (bad bool, err error) {
	faults := named(fault.All(), s.Names)
	c := &campaign{settings: s, play: play, w: w, table: Table{}}
	always := func() bool { return true }
	begun := time.Now()
	switch s.Mode {
	case Short:
		if err := c.control(ctx); err != nil {
			return true, err
		}
		c.run(ctx, short(faults, s.On, s.Seed), always)
	case Long:
		more := func() bool { return time.Since(begun) < s.For }
		for seed := s.Seed; more() && ctx.Err() == nil; seed = uint64(rand.Uint32()) { //nolint:gosec // not a secret
			runs := each(faults, s.On, seed, 1)
			if len(runs) == 0 {
				break
			}
			c.run(ctx, runs, more)
		}
	default:
		c.run(ctx, each(faults, s.On, s.Seed, s.Count), always)
	}
	fmt.Fprintf(w, "\n%sin %v\n", c.table, time.Since(begun).Round(time.Second))
	if len(c.table) == 0 && ctx.Err() == nil {
		return true, fmt.Errorf("no fault that is called like %q can happen there", s.Names)
	}
	return c.bad, nil
}

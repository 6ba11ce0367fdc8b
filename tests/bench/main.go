// Command bench runs reqlock and other locks on its own redis-server, and prints what each of them
// achieved and used. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/programtb"
	"github.com/reqlock/reqlock/tests/bench/internal/compare"
	"github.com/reqlock/reqlock/tests/bench/internal/idempotent"
	"github.com/reqlock/reqlock/tests/bench/internal/jobprocess"
	"github.com/reqlock/reqlock/tests/bench/internal/load"
)

func main() {
	if jobprocess.IsChild() {
		os.Exit(runChild())
	}
	p := program{out: os.Stdout, progress: os.Stderr}
	quick := flag.Bool("quick", false, "short runs, one of each: to see that all works, not for figures")
	only := flag.String("run", "", "run only the suites whose names match this regular expression")
	flag.DurationVar(&p.window, "window", time.Second, "how long a run takes")
	flag.IntVar(&p.repetitions, "repetitions", 5, "how often each run is repeated")
	flag.IntVar(&p.rounds, "rounds", 10, "how many rounds a burst has")
	flag.StringVar(&p.profiles, "cpuprofile", "", "write a CPU profile of each measured process into this `directory`")
	flag.StringVar(&p.pictures, "plot", "", "draw the pictures of the documentation into this `directory`")
	flag.Parse()
	if *quick {
		p.window, p.repetitions, p.rounds = 150*time.Millisecond, 1, 2
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := p.run(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// runChild does the work of one process of a run.
func runChild() int {
	slog.SetLogLoggerLevel(slog.LevelError) // the figures show what fails, and a thousand Lockers warn of each fault
	return jobprocess.Main(new(load.Job), new(idempotent.Requests))
}

// A program is one execution of the command.
type program struct {
	out, progress io.Writer
	window        time.Duration
	repetitions   int
	rounds        int
	profiles      string // the directory for CPU profiles; "" for none
	pictures      string // the directory to draw into; "" for none
}

// run runs the suites whose names match, and prints a table for each, and one of their goals. After
// an error the other suites still run.
func (p program) run(ctx context.Context, only string) error {
	names, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-run needs a regular expression: %w", err)
	}
	if p.profiles != "" {
		if err := os.MkdirAll(p.profiles, 0o755); err != nil { //nolint:gosec // profiles are for everybody
			return err
		}
	}
	var (
		errs []error
		all  []*compare.Results
	)
	outcome := programtb.Run(ctx, "bench", func(tb testing.TB) { //nolint:contextcheck // servers end with tb
		suites := slices.DeleteFunc(p.suites(tb), func(s compare.Suite) bool { return !names.MatchString(s.Name) })
		if len(suites) == 0 {
			tb.Fatalf("no suite has a name like %q", only)
		}
		p.printSetting(tb)
		for _, s := range suites {
			if tb.Context().Err() != nil {
				return
			}
			results, err := s.Measure(tb.Context(), p.repetitions, p.profiles, p.progress)
			results.Print(p.out)
			if p.pictures != "" {
				err = errors.Join(err, results.WritePicture(p.pictures))
			}
			all, errs = append(all, results), append(errs, err)
		}
	})
	compare.PrintGoals(p.out, goals(), all)
	return errors.Join(append(errs, outcome.Err(), ctx.Err())...)
}

// suites returns all suites, in the order in which they run. Servers that some share belong to tb.
func (p program) suites(tb testing.TB) []compare.Suite {
	tb.Helper()
	return slices.Concat(load.Suites(tb, p.window, p.rounds), idempotent.Suites(p.window))
}

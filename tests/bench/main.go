package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/growth"
	"github.com/reqlock/reqlock/tests/bench/internal/idempotent"
	"github.com/reqlock/reqlock/tests/bench/internal/jobprocess"
	"github.com/reqlock/reqlock/tests/bench/internal/load"
	"github.com/reqlock/reqlock/tests/bench/internal/request"
)

// The exit codes.
const (
	exitRight       = 0
	exitWrong       = 1 // too many goroutines held a lock at a time
	exitCannotBegin = 2 // or the program failed
)

// largest is the largest number of keys or waiters in the growth suites.
const largest = 100_000

func main() {
	if jobprocess.Is() {
		os.Exit(jobprocess.Main(newJob))
	}
	p := program{out: os.Stdout, progress: os.Stderr}
	var (
		quick = flag.Bool("quick", false, "short runs, one of each: to see that all works, not for figures")
		only  = flag.String("run", "", "run only the suites whose names match this regular expression")
	)
	flag.DurationVar(&p.window, "window", time.Second, "how long a run takes")
	flag.IntVar(&p.repetitions, "repetitions", 5, "how often each run is repeated")
	flag.IntVar(&p.rounds, "rounds", 10, "how many rounds a burst has")
	flag.StringVar(&p.json, "json", "", "write the raw runs to this `file`")
	flag.StringVar(&p.plots, "plot", "", "draw the comparisons into this `directory`, as SVG files")
	flag.StringVar(&p.profiles, "profile", "", "write CPU profiles of all runs into this `directory`")
	flag.Parse()
	p.largest = largest
	if *quick {
		p.window, p.repetitions, p.rounds, p.largest = 150*time.Millisecond, 1, 2, 10_000
	}
	names, err := regexp.Compile(*only)
	if err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "bench: -run needs a regular expression, and there are no arguments:", err, flag.Args())
		os.Exit(exitCannotBegin)
	}
	p.only = names

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(p.run(ctx))
}

// newJob returns an empty job of a kind, for a child.
func newJob(kind string) jobprocess.Job {
	for _, job := range []jobprocess.Job{
		new(load.Loop), new(load.Burst),
		new(request.FrameworkLoad), new(request.Middleware),
		new(idempotent.Requests), new(idempotent.Records),
		new(growth.Keys), new(growth.Waiters),
	} {
		if job.Kind() == kind {
			return job
		}
	}
	return nil
}

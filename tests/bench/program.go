package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/programtb"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/report"
	"github.com/reqlock/reqlock/tests/bench/internal/runner"
)

// A program is one execution of the command.
type program struct {
	out, progress io.Writer
	only          *regexp.Regexp // the suites to run

	window      time.Duration
	repetitions int
	rounds      int
	largest     int

	json, plots, profiles string // the files to write; "" for none
}

// run runs all suites and returns the exit code. After an error, or after the end of ctx,
// it still prints the results so far.
func (p program) run(ctx context.Context) int {
	var (
		results *report.Results
		err     error
	)
	servers := programtb.Run(ctx, "bench", func(tb testing.TB) { results, err = p.measure(tb) }) //nolint:contextcheck // servers end with tb
	err = errors.Join(err, servers.Err())
	if results != nil {
		err = errors.Join(err, p.conclude(results))
	}
	switch {
	case err != nil:
		fmt.Fprintln(p.progress, "bench:", err)
		return exitCannotBegin
	case results.Violations() > 0:
		fmt.Fprintln(p.progress, "bench: two held a lock at once")
		return exitWrong
	}
	return exitRight
}

// measure starts a server, runs all suites and prints each result. The server and the files
// belong to tb.
func (p program) measure(tb testing.TB) (*report.Results, error) {
	tb.Helper()
	ctx := tb.Context()
	if p.profiles != "" {
		if err := os.MkdirAll(p.profiles, 0o750); err != nil {
			return nil, err
		}
	}
	server := redisserver.Start(tb)
	version, err := server.Version(ctx)
	if err != nil {
		return nil, err
	}

	results := &report.Results{Setting: report.NewSetting(version, p.window, p.repetitions, p.rounds)}
	results.Setting.Print(p.out)
	l := &runner.Runner{
		TB: tb, Server: server, Dir: tb.TempDir(),
		Window: p.window, Repetitions: p.repetitions, Rounds: p.rounds, Largest: p.largest,
		Profiles: p.profiles, Progress: p.progress, Quarantine: lock.TTL,
	}
	var failed error
	for _, s := range suites() {
		if !p.only.MatchString(s.name) {
			continue
		}
		if err := s.run(ctx, l, results); err != nil {
			if ctx.Err() != nil {
				return results, fmt.Errorf("%s: %w", s.name, context.Cause(ctx))
			}
			fmt.Fprintln(p.progress, "bench:", err) // the other suites may succeed
			failed = errors.Join(failed, err)
		}
		s.print(p.out, results)
	}
	return results, failed
}

// conclude prints the targets and writes the requested files.
func (p program) conclude(results *report.Results) error {
	results.PrintTargets(p.out)
	var errs []error
	if p.json != "" {
		errs = append(errs, writeJSON(p.json, results))
	}
	if p.plots != "" {
		errs = append(errs, results.WriteCharts(p.plots))
	}
	return errors.Join(errs...)
}

// writeJSON writes the raw runs to a file, and creates its directory.
func writeJSON(path string, results *report.Results) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	file, err := os.Create(path) //nolint:gosec // where the user asked for it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return results.WriteJSON(file)
}

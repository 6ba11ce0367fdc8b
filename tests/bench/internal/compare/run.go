package compare

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/programtb"
	"github.com/reqlock/reqlock/tests/bench/internal/jobprocess"
	"github.com/reqlock/reqlock/tests/bench/internal/load"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/runner"
	"github.com/reqlock/reqlock/tests/bench/internal/shared"
)

// Run runs all locks of a suite, in alternating order.
func (s Suite) Run(ctx context.Context, l *runner.Runner) (runs []Run, err error) {
	result := programtb.Run(ctx, s.Name, func(tb testing.TB) { runs, err = s.runOn(tb, l) }) //nolint:contextcheck // servers end with tb
	if failed := result.Err(); failed != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w", s.Name, failed))
	}
	return runs, err
}

// runOn is Run with servers that belong to tb.
func (s Suite) runOn(tb testing.TB, l *runner.Runner) (runs []Run, err error) {
	tb.Helper()
	on := s.deploy(tb, l)
	err = l.Repeat(s.Name, len(s.Locks), func(repetition, contestant int) error {
		name := s.Locks[contestant]
		run, err := s.once(tb.Context(), l, on, name, repetition)
		if err == nil {
			runs = append(runs, run)
		}
		return err
	})
	return runs, err
}

// once runs one lock once.
func (s Suite) once(ctx context.Context, l *runner.Runner, on deployment, name lock.Name, repetition int) (Run, error) {
	if err := on.Clear(ctx); err != nil {
		return Run{}, err
	}
	memoryPath := ""
	var memory *shared.Memory
	if s.Contended() {
		memoryPath = filepath.Join(l.Dir, "shared")
		if err := shared.Create(memoryPath); err != nil {
			return Run{}, err
		}
		var err error
		if memory, err = shared.Open(memoryPath); err != nil {
			return Run{}, err
		}
		defer func() { _ = memory.Close() }()
	}

	before, err := on.Used(ctx)
	if err != nil {
		return Run{}, err
	}
	outcomes, err := jobprocess.Run[load.Outcome](ctx, s.jobs(l, on, name, memoryPath), jobprocess.Options{
		Begin: func() (err error) {
			before, err = on.Used(ctx)
			return err
		},
		Profile: l.Profile(s.Name, string(name), repetition),
	})
	if err != nil {
		return Run{}, err
	}
	after, err := on.Used(ctx)
	if err != nil {
		return Run{}, err
	}

	e := observation{outcomes: outcomes, server: after.Since(before)}
	if memory != nil {
		e.violations = memory.Violations(acquired(outcomes))
	}
	if acquired(outcomes) == 0 {
		return Run{}, fmt.Errorf("%s: no lock was taken", name)
	}
	run := summarize(s, s.window(l.Window), e)
	run.Lock, run.Repetition = name, repetition+1
	return run, nil
}

// jobs returns the jobs of all processes.
func (s Suite) jobs(l *runner.Runner, on deployment, name lock.Name, memoryPath string) []jobprocess.Job {
	jobs := make([]jobprocess.Job, s.Processes)
	for i := range jobs {
		workers := load.Workers{
			Lock: name, Addrs: on.Addrs(), Memory: memoryPath,
			Process: i, Processes: s.Processes, Goroutines: s.Goroutines, Section: s.Section,
			Permits: s.Permits, Readers: s.Readers, Lockers: s.Lockers,
		}
		if s.Burst {
			jobs[i] = &load.Burst{Workers: workers, Repeat: l.Rounds}
		} else {
			jobs[i] = &load.Loop{Workers: workers, Window: s.window(l.Window), OwnKeys: s.OwnKeys}
		}
	}
	return jobs
}

// acquired returns the number of locks that all processes have taken.
func acquired(outcomes []load.Outcome) (sum int64) {
	for _, o := range outcomes {
		sum += o.Acquired
	}
	return sum
}

package load

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/exclusion"
	"github.com/reqlock/reqlock/tests/bench/internal/jobprocess"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/report"
)

// run runs one lock once. Goroutines that ended early are an error beside the figures. Without
// exclusion there are no figures.
func (s Shape) run(ctx context.Context, on *redisserver.Servers, name string, window time.Duration, rounds int) (_ []report.Figure, err error) {
	dir, err := os.MkdirTemp("", "reqlock-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	memory, err := exclusion.Create(filepath.Join(dir, "memory"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = memory.Close() }()

	kind, err := lock.Find(name)
	if err != nil {
		return nil, err
	}
	s.Goroutines /= kind.Keys
	jobs := make([]jobprocess.Job, s.Processes)
	for i := range jobs {
		jobs[i] = &Job{
			Shape: s, Lock: name, Addrs: on.Addrs, Memory: filepath.Join(dir, "memory"),
			Process: i, Window: window, Rounds: rounds,
		}
	}
	outcomes, serverCPU, err := jobprocess.Run[Outcome](ctx, on, jobs...)
	if err != nil {
		return nil, err
	}

	all := sum(outcomes)
	if all.Acquired == 0 && s.Keys == 0 {
		return nil, fmt.Errorf("no lock was taken: %v", all.Faults)
	}
	if !s.OwnKeys {
		if violations := memory.Violations(all.Acquired); violations > 0 {
			return nil, fmt.Errorf("TOO MANY HOLDERS AT ONCE, %d times", violations)
		}
	}
	all.Acquired *= int64(kind.Keys)
	all.AcquiredInTime *= int64(kind.Keys)
	if len(all.Faults) > 0 {
		err = fmt.Errorf("%d goroutines gave up; the first: %s", len(all.Faults), all.Faults[0])
	}
	return s.figures(all, window, serverCPU), err
}

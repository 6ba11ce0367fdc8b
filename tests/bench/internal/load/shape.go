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

// A Shape says which goroutines lock which keys.
type Shape struct {
	Processes  int
	Goroutines int           // in each process
	Lockers    int           // in each process, with clients of their own, like processes; 0 is one
	Section    time.Duration // how long a holder sleeps; 0 for an empty section
	OwnKeys    bool          // each goroutine has its own key, so there is no contention
	Burst      bool          // each goroutine takes the lock once in each round
	Permits    int           // how many goroutines may hold a key at a time; 0 is one
	Readers    int           // of a hundred turns, so many take a shared lock
	Keys       int           // one process holds so many keys; of two, the second one waits for them
	IsFirst    bool          // each lock is the first one of a new Locker with a new client
	NoScripts  bool          // the server loses its scripts before each lock
}

// The shapes of the suites.

func ownKeys(goroutines int) Shape {
	return Shape{Processes: 1, Goroutines: goroutines, OwnKeys: true}
}

func oneKey(processes, goroutines int, section time.Duration) Shape {
	return Shape{Processes: processes, Goroutines: goroutines, Section: section}
}

func burst(processes, goroutines int) Shape {
	return Shape{Processes: processes, Goroutines: goroutines, Burst: true}
}

func firstLock(noScripts bool) Shape {
	return Shape{Processes: 1, Goroutines: 1, OwnKeys: true, IsFirst: true, NoScripts: noScripts}
}

func manyKeys(processes, keys int) Shape {
	return Shape{Processes: processes, Goroutines: 256, OwnKeys: true, Keys: keys}
}

// crowd is that many processes with one goroutine each. At most four processes are started. Each
// of the others is a Locker in one of them, with its own connections, queue and place in line.
func crowd(processes int, section time.Duration) Shape {
	started := min(4, processes/5)
	each := processes / started
	return Shape{Processes: started, Goroutines: each, Lockers: each, Section: section}
}

// window returns the duration of a run. Waiters take long turns with a section, or in a crowd. A
// process that holds keys renews them once in four seconds.
func (s Shape) window(unit time.Duration) time.Duration {
	switch {
	case s.Keys > 0 && s.Processes == 1:
		return 4 * unit
	case s.Section > 0 || s.Lockers > 1 || s.Keys > 0:
		return 2 * unit
	}
	return unit
}

func (s Shape) String() string {
	text := fmt.Sprintf("%d goroutines of one process", s.Goroutines)
	switch {
	case s.Keys > 0 && s.Processes == 1:
		return fmt.Sprintf("one process takes %d keys, holds them and releases them", s.Keys)
	case s.Keys > 0:
		return fmt.Sprintf("one process waits for %d keys that another one holds, and gets them", s.Keys)
	case s.Lockers > 1:
		text = fmt.Sprintf("%d processes of one goroutine", s.Processes*s.Lockers)
	case s.Processes > 1:
		text = fmt.Sprintf("%d processes of %d goroutines", s.Processes, s.Goroutines)
	case s.Goroutines == 1:
		text = "one goroutine"
	}
	switch {
	case s.OwnKeys && s.Goroutines == 1:
		text += ", one key"
	case s.OwnKeys:
		text += ", each with a key of its own"
	case s.Burst:
		text += ", which take one key once, at the same time"
	case s.Section > 0:
		text += fmt.Sprintf(", one key, %v section", s.Section)
	default:
		text += ", one key, empty section"
	}
	if s.Permits > 1 {
		text += fmt.Sprintf(", %d permits", s.Permits)
	}
	if s.Readers > 0 {
		text += fmt.Sprintf(", %d %% of the turns read", s.Readers)
	}
	return text
}

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

package traffic

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/resource"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic/client"
)

// awaitTimeout is how long anything may take that is bound to happen, on a busy
// machine.
const awaitTimeout = time.Minute

// A Workload is client processes, which work from the start to Finish. Its methods are
// safe for concurrent use; those that can fail the run are for its goroutine, as
// those of testing.TB are.
type Workload struct {
	tb       testing.TB
	settings Settings
	resource *resource.Resource
	journal  *journal

	mu        sync.Mutex
	next      int // number of a process
	processes map[int]*process
	failures  []history.ProcessFailure
}

// Main is the life of a client process. It has to be the first thing that any
// program does that starts a crew, which starts that program again: main, or the
// TestMain of a package of tests. In a process that is no client it returns false
// at once; else its caller ends the process with the code.
func Main() (code int, isClient bool) { return client.Main() }

// Start starts all processes, which begin at once. The cleanup of tb kills those
// that are left.
func Start(tb testing.TB, s Settings) *Workload {
	tb.Helper()
	c := &Workload{
		tb: tb, settings: s.completed(), resource: resource.Serve(tb),
		journal: newJournal(), processes: map[int]*process{},
	}
	tb.Cleanup(c.killAll)
	for slot := range c.settings.Processes {
		c.startProcess(slot, 0)
	}
	return c
}

// Keys are the names of the locks in Redis.
func (c *Workload) Keys() []string {
	keys := c.settings.keys()
	for i := range keys {
		keys[i] = c.settings.Prefix + keys[i]
	}
	return keys
}

// LockName returns the name in Redis of the lock that a call is about. Attempts have
// locks of their own.
func (c *Workload) LockName(op history.Op) string {
	mark := ""
	if op.Kind == history.Begin || op.Number > 0 {
		mark = "i:"
	}
	return c.settings.Prefix + mark + op.Key
}

// Processes are the numbers of those that run, in their order. Those that stand
// still are among them.
func (c *Workload) Processes() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.processes))
}

// Grants is how many locks were granted so far, attempts not counted.
func (c *Workload) Grants() int { return c.journal.grantCount() }

// AwaitGrants returns when so many more locks were granted. It fails the run if that
// takes a minute, or if a process ends by itself, or if the run is interrupted.
func (c *Workload) AwaitGrants(more int) {
	c.tb.Helper()
	enough := c.Grants() + more
	deadline := time.Now().Add(awaitTimeout)
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for c.Grants() < enough {
		<-ticker.C
		if err := c.tb.Context().Err(); err != nil {
			c.tb.Fatalf("%d of %d grants are still missing: %v", enough-c.Grants(), more, err)
		}
		c.failIfExited()
		if time.Now().After(deadline) {
			c.tb.Fatalf("%d of %d grants are still missing after %v", enough-c.Grants(), more, awaitTimeout)
		}
	}
}

// failIfExited fails the run if a process has ended by itself.
func (c *Workload) failIfExited() {
	c.tb.Helper()
	for _, number := range c.Processes() {
		if m := c.process(number); m != nil && m.hasExited() {
			c.tb.Fatalf("process %d has ended by itself: %v\n%s", number, m.err, m.output.String())
		}
	}
}

// process returns a process that runs, or nil.
func (c *Workload) process(number int) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.processes[number]
}

// mustProcess returns a process that runs, and fails the run if there is none of that
// number.
func (c *Workload) mustProcess(number int) *process {
	c.tb.Helper()
	m := c.process(number)
	if m == nil {
		c.tb.Fatalf("there is no process %d: those are %v", number, c.Processes())
	}
	return m
}

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

// awaitTimeout bounds every wait for something that must happen, even on a busy machine.
const awaitTimeout = time.Minute

// A Workload is a set of client processes, which work from Start to Finish. Its methods are
// safe for concurrent use. Methods that can fail the run must be called on its goroutine,
// as testing.TB requires.
type Workload struct {
	tb       testing.TB
	settings Settings
	resource *resource.Resource
	journal  *journal

	mu        sync.Mutex
	next      int // the number of the next process
	processes map[int]*process
	failures  []history.ProcessFailure
}

// Main runs a client process. Every program that calls Start must call Main first, in main
// or in TestMain, since Start starts that program again. In a process that is no client it
// returns false at once. Otherwise the caller must exit with the code.
func Main() (code int, isClient bool) { return client.Main() }

// Start starts all processes, which work at once. The cleanup of tb kills the remaining
// ones.
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

// Keys returns the names of all locks in Redis, the exclusive ones first.
func (c *Workload) Keys() []string {
	keys := c.settings.allKeys()
	for i := range keys {
		keys[i] = c.settings.Prefix + keys[i]
	}
	return keys
}

// LockName returns the name in Redis of the lock that a call is about. Attempts have locks
// of their own.
func (c *Workload) LockName(op history.Op) string {
	mark := ""
	if op.Kind == history.Begin || op.Number > 0 {
		mark = "i:"
	}
	return c.settings.Prefix + mark + op.Key
}

// Processes returns the numbers of the running processes, sorted. It includes paused ones.
func (c *Workload) Processes() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.processes))
}

// Grants returns the number of locks that were granted so far, without attempts.
func (c *Workload) Grants() int { return c.journal.grantCount() }

// AwaitGrants returns after that many more grants. It fails the run after a minute, if a
// process exits, or if the run is interrupted.
func (c *Workload) AwaitGrants(more int) {
	c.tb.Helper()
	c.await(c.Grants()+more, c.Grants, "grants")
}

// AwaitEachClient returns once each client was granted a lock. It fails the run as AwaitGrants
// does. Call it before a process is killed: the clients of the next process have the same
// numbers, so they count already.
func (c *Workload) AwaitEachClient() {
	c.tb.Helper()
	c.await(c.settings.Processes*c.settings.Clients, c.journal.servedCount, "clients with a grant")
}

// await returns once count returns at least enough. The error names what is missing.
func (c *Workload) await(enough int, count func() int, missing string) {
	c.tb.Helper()
	deadline := time.Now().Add(awaitTimeout)
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for count() < enough {
		<-ticker.C
		if err := c.tb.Context().Err(); err != nil {
			c.tb.Fatalf("still missing: %d %s: %v", enough-count(), missing, err)
		}
		c.failIfExited()
		if time.Now().After(deadline) {
			c.tb.Fatalf("still missing after %v: %d %s", awaitTimeout, enough-count(), missing)
		}
	}
}

// failIfExited fails the run if a process has exited.
func (c *Workload) failIfExited() {
	c.tb.Helper()
	for _, number := range c.Processes() {
		if m := c.process(number); m != nil && m.hasExited() {
			c.tb.Fatalf("process %d has ended by itself: %v\n%s", number, m.err, m.output.String())
		}
	}
}

// process returns a running process, or nil.
func (c *Workload) process(number int) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.processes[number]
}

// mustProcess returns a running process. It fails the run if no process has that number.
func (c *Workload) mustProcess(number int) *process {
	c.tb.Helper()
	m := c.process(number)
	if m == nil {
		c.tb.Fatalf("there is no process %d: those are %v", number, c.Processes())
	}
	return m
}

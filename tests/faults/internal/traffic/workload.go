// Package traffic is the workload of a run: client processes that take locks, work under
// them and begin attempts. A fault can kill and pause these processes. The program starts
// itself again as a client process: see Main and package client.
//
// A process reports each call before it makes it and after it returned. So a killed process
// loses only the results of calls that had not returned.
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

// Settings describe the clients of a run.
type Settings struct {
	client.Options
	// Processes is the number of processes at a time.
	Processes int
	// TwoKinds makes half of the processes use the client of a cluster, on one server.
	TwoKinds bool
	// Routes returns the address that a process dials instead of each server; nil for none.
	// It is called once for each process, including those that replace a killed one.
	Routes func(process int) map[string]string
}

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
		tb: tb, settings: s, resource: resource.Serve(tb),
		journal: newJournal(), processes: map[int]*process{},
	}
	tb.Cleanup(c.killAll)
	for slot := range c.settings.Processes {
		c.startProcess(slot, 0)
	}
	return c
}

// LockName returns the name in Redis of the lock that a call is about. Attempts have locks
// of their own.
func LockName(op history.Op) string {
	if op.Kind == history.Begin || op.Number > 0 {
		return client.Prefix + "i:" + op.Key
	}
	return client.Prefix + op.Key
}

// Processes returns the numbers of the running processes, sorted. It includes paused ones.
func (c *Workload) Processes() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.processes))
}

// AwaitGrants returns after that many more grants of locks, attempts not included. It fails the run after a minute, if a
// process exits, or if the run is interrupted.
func (c *Workload) AwaitGrants(more int) {
	c.tb.Helper()
	c.await(c.journal.grantCount()+more, c.journal.grantCount, "grants")
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

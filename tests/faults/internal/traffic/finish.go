package traffic

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// dumpTimeout is how long a process may take to print its goroutines.
const dumpTimeout = 10 * time.Second

// Finish tells all clients to end after their current turn, and returns when all processes
// have ended. It fails the run if a process failed, or if a call returned an unexpected
// error.
//
// A call that has not returned after the patience stays in the history without a return.
// Finish logs the goroutines of its process, and kills the process.
func (c *Workload) Finish(patience time.Duration) {
	c.tb.Helper()
	numbers := c.Processes()
	for _, number := range numbers {
		m := c.mustProcess(number)
		if m.isPaused {
			c.Continue(number)
		}
		_ = m.stdin.Close() // it may have exited
	}
	late, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, number := range numbers {
		m := c.mustProcess(number)
		select {
		case <-m.done:
			if m.err != nil {
				c.tb.Errorf("%v: %v\n%s", m, m.err, m.output.String())
			}
		case <-late.Done():
			c.killStuck(m, patience)
		}
		c.mu.Lock()
		delete(c.processes, number)
		c.mu.Unlock()
	}
	c.reportFailures()
}

// killStuck ends a process that does not end by itself.
func (c *Workload) killStuck(m *process, patience time.Duration) {
	c.tb.Helper()
	if m.child.Dump() == nil {
		select {
		case <-m.done:
		case <-time.After(dumpTimeout):
		}
	}
	m.kill()
	calls := c.journal.calls(func(op history.Op) bool { return op.Process == m.number && op.Return == 0 })
	if len(calls) == 0 {
		c.tb.Errorf("%v has not ended within %v, and is in no call\n%s", m, patience, m.output.String())
		return
	}
	for _, op := range calls {
		c.tb.Logf("%v: client %d is stuck in a %s of %s", m, op.Client, op.Kind, op.Key)
	}
	c.tb.Log(m.output.String())
}

// reportFailures fails the run if a call returned an unexpected error.
func (c *Workload) reportFailures() {
	c.tb.Helper()
	failed := c.journal.calls(func(op history.Op) bool { return op.Outcome == history.Failed })
	for i, op := range failed {
		if i == 10 {
			c.tb.Errorf("and %d more", len(failed)-i)
			return
		}
		c.tb.Errorf("process %d, client %d: %s of %s: %s", op.Process, op.Client, op.Kind, op.Key, op.Error)
	}
}

// Fill adds to a history the calls of the clients, in order, the accesses to the resource,
// and the failures of processes.
func (c *Workload) Fill(h *history.History) {
	h.Ops = c.journal.calls(func(history.Op) bool { return true })
	c.journal.fill(h)
	c.resource.Fill(h)
	c.mu.Lock()
	defer c.mu.Unlock()
	h.ProcessFailures = append([]history.ProcessFailure(nil), c.failures...)
}

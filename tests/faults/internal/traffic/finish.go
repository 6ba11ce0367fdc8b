package traffic

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// dumpTimeout is how long a process may take to write down its goroutines.
const dumpTimeout = 10 * time.Second

// Finish tells all clients to end after the turn that they are in, and returns when
// all processes have ended. It fails the run if one of them ended in failure, or has
// heard an error that nobody expects.
//
// Who is still in a call after the patience stays in the history as one that has not
// returned. The goroutines of its process are logged, and it is killed.
func (c *Workload) Finish(patience time.Duration) {
	c.tb.Helper()
	numbers := c.Processes()
	for _, number := range numbers {
		m := c.mustProcess(number)
		if m.isPaused {
			c.Continue(number)
		}
		_ = m.stdin.Close() // it may have ended by itself
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

// killStuck ends a process that does not end.
func (c *Workload) killStuck(m *process, patience time.Duration) {
	c.tb.Helper()
	if dump(m.child) == nil {
		select {
		case <-m.done:
		case <-time.After(dumpTimeout):
		}
	}
	m.kill()
	calls := c.journal.calls(func(op history.Op) bool { return op.Process == m.number && op.Return == 0 })
	if len(calls) == 0 {
		c.tb.Errorf("%v has not ended %v after its clients were told to, and is in no call\n%s", m, patience, m.output.String())
		return
	}
	for _, op := range calls {
		c.tb.Logf("%v: client %d is stranded in a %s of %s", m, op.Client, op.Kind, op.Key)
	}
	c.tb.Log(m.output.String())
}

// reportFailures fails the run if a call has returned what nobody expects.
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

// Fill puts into a history what the clients did, what the resource has seen of them,
// and which processes were killed or stood still. Calls are in the order in which
// they were made.
func (c *Workload) Fill(h *history.History) {
	h.Ops = c.journal.calls(func(history.Op) bool { return true })
	c.journal.fill(h)
	h.Accesses, h.Effects = c.resource.Accesses(), c.resource.Effects()
	c.mu.Lock()
	defer c.mu.Unlock()
	h.ProcessFailures = append([]history.ProcessFailure(nil), c.failures...)
}

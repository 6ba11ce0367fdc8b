package traffic

import (
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/clock"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// Kill ends a process as a crash does. When it returns the process is gone, and
// another one, with a new number, has its clients.
func (c *Workload) Kill(process int) {
	c.tb.Helper()
	m := c.mustProcess(process)
	c.failIfExited()
	c.mu.Lock()
	if m.isPaused {
		c.recordContinue(m) // as far as the history is concerned, it now dies instead
	}
	c.failures = append(c.failures, history.ProcessFailure{Process: process, From: clock.Now()})
	delete(c.processes, process)
	c.mu.Unlock()
	m.kill()
	c.startProcess(m.slot, m.generation+1)
}

// Stop makes a process stand still, and returns when it does.
func (c *Workload) Stop(process int) {
	c.tb.Helper()
	m := c.mustProcess(process)
	c.mu.Lock()
	m.isPaused = true
	c.failures = append(c.failures, history.ProcessFailure{Process: process, From: clock.Now()})
	c.mu.Unlock()
	if err := stop(m.child); err != nil {
		c.tb.Fatalf("stop process %d: %v", process, err)
	}
	for deadline := time.Now().Add(awaitTimeout); ; time.Sleep(time.Millisecond) {
		isStopped, err := isStopped(m.child)
		switch {
		case err != nil:
			c.tb.Fatalf("stop process %d: %v", process, err)
		case isStopped:
			return
		case time.Now().After(deadline):
			c.tb.Fatalf("process %d does not stand still after %v", process, awaitTimeout)
		}
	}
}

// Continue lets a process go on that stands still.
func (c *Workload) Continue(process int) {
	c.tb.Helper()
	m := c.mustProcess(process)
	if err := resume(m.child); err != nil {
		c.tb.Fatalf("continue process %d: %v", process, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recordContinue(m)
}

// recordContinue ends the time in which a process stood still. The caller has locked mu.
func (c *Workload) recordContinue(m *process) {
	m.isPaused = false
	for i := range c.failures {
		if d := &c.failures[i]; d.Process == m.number && d.To == 0 {
			d.To = clock.Now()
		}
	}
}

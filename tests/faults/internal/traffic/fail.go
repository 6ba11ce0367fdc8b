package traffic

import (
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// Kill kills a process. When it returns, the process has ended, and a new process with a
// new number has its clients.
func (c *Workload) Kill(process int) {
	c.tb.Helper()
	m := c.mustProcess(process)
	c.failIfExited()
	c.mu.Lock()
	if m.isPaused {
		c.recordContinue(m) // the pause ends: the history has a kill from now on
	}
	c.failures = append(c.failures, history.ProcessFailure{Process: process, From: clock.Now()})
	delete(c.processes, process)
	c.mu.Unlock()
	m.kill()
	c.startProcess(m.slot, m.generation+1)
}

// Stop pauses a process, and returns when it is stopped.
func (c *Workload) Stop(process int) {
	c.tb.Helper()
	m := c.mustProcess(process)
	c.mu.Lock()
	m.isPaused = true
	c.failures = append(c.failures, history.ProcessFailure{Process: process, From: clock.Now()})
	c.mu.Unlock()
	if err := m.child.Pause(); err != nil {
		c.tb.Fatalf("stop process %d: %v", process, err)
	}
}

// Continue continues a process that is paused.
func (c *Workload) Continue(process int) {
	c.tb.Helper()
	m := c.mustProcess(process)
	if err := m.child.Resume(); err != nil {
		c.tb.Fatalf("continue process %d: %v", process, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recordContinue(m)
}

// recordContinue records the end of a pause. The caller holds mu.
func (c *Workload) recordContinue(m *process) {
	m.isPaused = false
	for i := range c.failures {
		if d := &c.failures[i]; d.Process == m.number && d.To == 0 {
			d.To = clock.Now()
		}
	}
}

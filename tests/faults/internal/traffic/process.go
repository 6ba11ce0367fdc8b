package traffic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/child"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic/client"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// A process is one client process.
type process struct {
	number           int
	slot, generation int // which clients it has, and how many processes had them before
	child            *child.Process
	stdin            io.Closer // closed to end the process
	done             chan struct{}
	isPaused         bool // it was stopped, and has not continued

	// These may be read once done is closed.
	output bytes.Buffer
	err    error
}

// startProcess starts a process with the clients of a slot.
func (c *Workload) startProcess(slot, generation int) {
	c.tb.Helper()
	c.mu.Lock()
	m := &process{number: c.next, slot: slot, generation: generation, done: make(chan struct{})}
	c.next++
	c.mu.Unlock()
	if err := m.start(c.config(m), c.journal); err != nil {
		c.tb.Fatalf("start process %d: %v", m.number, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes[m.number] = m
}

// config returns the Config of a process.
func (c *Workload) config(m *process) client.Config {
	s := c.settings
	config := client.Config{
		Options: s.Options, Process: m.number, First: m.slot * s.Clients, Generation: m.generation,
		AsCluster: s.TwoKinds && m.number%4 < 2, Resource: c.resource.Addr(),
	}
	if s.Routes != nil {
		config.Routes = s.Routes(m.number)
	}
	return config
}

// start starts this program again as a client. Its reports go to the journal.
func (m *process) start(o client.Config, j *journal) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	reports, reportPipe, err := os.Pipe()
	if err != nil {
		return err
	}
	// It does not use the context of the run: the clients must end when Finish tells them,
	// so that they report all calls.
	cmd := exec.CommandContext(context.Background(), program) //nolint:gosec // it is this one
	cmd.Env = append(os.Environ(), client.ConfigEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = &m.output, &m.output
	cmd.ExtraFiles = []*os.File{reportPipe} // it becomes client.ReportFile
	cmd.WaitDelay = time.Second
	if m.stdin, err = cmd.StdinPipe(); err == nil {
		err = m.run(cmd, func() error { return j.read(reports) })
	}
	_ = reportPipe.Close() // the process has a copy
	if err != nil {
		_ = reports.Close()
	}
	return err
}

// run starts the command. It closes done when the process has ended and all its reports are
// read.
func (m *process) run(cmd *exec.Cmd, readReports func() error) (err error) {
	if m.child, err = child.Start(cmd); err != nil {
		return err
	}
	go func() {
		defer close(m.done)
		read := readReports()
		m.err = errors.Join(m.child.Wait(), read)
	}()
	return nil
}

// hasExited reports whether the process has exited.
func (m *process) hasExited() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// kill kills the process, and returns when it has ended.
func (m *process) kill() {
	m.child.Kill()
	<-m.done
}

// killAll kills all processes of a run that did not finish.
func (c *Workload) killAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for number, m := range c.processes {
		m.kill()
		delete(c.processes, number)
	}
}

func (m *process) String() string {
	return fmt.Sprintf("process %d (place %d, life %d)", m.number, m.slot, m.generation)
}

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

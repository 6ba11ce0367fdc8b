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
	"runtime"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/traffic/client"
)

// A process is one client process.
type process struct {
	number           int
	slot, generation int // whose clients it has, and how many had them before
	child            *os.Process
	stdin            io.Closer // until it is closed
	done             chan struct{}
	isPaused         bool // it was stopped, and has not gone on

	// These are whole once done is closed.
	output bytes.Buffer
	err    error
}

// startProcess starts a process with the clients of that place.
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

// config returns what a process is to do.
func (c *Workload) config(m *process) client.Config {
	s := c.settings
	return client.Config{
		Process: m.number, First: m.slot * s.Clients, Clients: s.Clients, Generation: m.generation, Seed: s.Seed,
		Redis: s.Redis, Routes: s.Routes(m.number), Resource: c.resource.Addr(),
		Keys: s.keys(), Prefix: s.Prefix, TTL: s.TTL,
		CommandTimeout: s.CommandTimeout, ReadTimeout: s.ReadTimeout,
		Quarantine: s.Quarantine, Replicas: s.Replicas, ReplicaTimeout: s.ReplicaTimeout,
		StallTime: s.StallTime, Attempts: s.Attempts,
		FullSpeed: s.FullSpeed, Careless: s.Careless,
	}
}

// start starts this program again, as a client with these orders. Its reports go to
// the journal.
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
	// The background context on purpose: the clients end when they are told to, and
	// not with the context of the run.
	cmd := exec.CommandContext(context.Background(), program) //nolint:gosec // it is this one
	cmd.Env = append(os.Environ(), client.ConfigEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = &m.output, &m.output
	cmd.ExtraFiles = []*os.File{reportPipe} // which makes it client.ReportFile
	cmd.SysProcAttr = childAttr()
	cmd.WaitDelay = time.Second
	if m.stdin, err = cmd.StdinPipe(); err == nil {
		err = m.run(cmd, func() error { return j.read(reports) })
	}
	_ = reportPipe.Close() // the process has its own
	if err != nil {
		_ = reports.Close()
	}
	return err
}

// run starts the command, and closes done when it has ended and all that it has told
// was listened to.
func (m *process) run(cmd *exec.Cmd, readReports func() error) error {
	started := make(chan error, 1)
	go func() {
		// Pdeathsig looks at the thread that forked (golang/go#27505).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(m.done)
		err := cmd.Start()
		m.child = cmd.Process
		started <- err
		if err != nil {
			return
		}
		readDone := make(chan error, 1)
		go func() { readDone <- readReports() }()
		err = cmd.Wait()
		m.err = errors.Join(err, <-readDone)
	}()
	return <-started
}

// hasExited reports whether the process has.
func (m *process) hasExited() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// kill ends the process, wherever it is, and returns when it is gone.
func (m *process) kill() {
	_ = m.child.Kill()
	<-m.done
}

// killAll is for the end of a run that has not come to its own.
func (c *Workload) killAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for number, m := range c.processes {
		m.kill()
		delete(c.processes, number)
	}
}

// String names the process and its clients.
func (m *process) String() string {
	return fmt.Sprintf("process %d (place %d, life %d)", m.number, m.slot, m.generation)
}

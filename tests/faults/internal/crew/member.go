package crew

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

	"github.com/reqlock/reqlock/tests/faults/internal/crew/client"
)

// A member is one client process.
type member struct {
	number      int
	place, life int // whose clients it has, and how many had them before
	child       *os.Process
	work        io.Closer // until it is closed
	done        chan struct{}
	stands      bool // it was stopped, and has not gone on

	// These are whole once done is closed.
	output bytes.Buffer
	err    error
}

// enlist starts a process with the clients of that place.
func (c *Crew) enlist(place, life int) {
	c.tb.Helper()
	c.mu.Lock()
	m := &member{number: c.next, place: place, life: life, done: make(chan struct{})}
	c.next++
	c.mu.Unlock()
	if err := m.start(c.orders(m), c.journal); err != nil {
		c.tb.Fatalf("start process %d: %v", m.number, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[m.number] = m
}

// orders returns what a process is to do.
func (c *Crew) orders(m *member) client.Orders {
	s := c.settings
	return client.Orders{
		Process: m.number, First: m.place * s.Clients, Clients: s.Clients, Life: m.life, Seed: s.Seed,
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
func (m *member) start(o client.Orders, j *journal) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	reports, told, err := os.Pipe()
	if err != nil {
		return err
	}
	// The background context on purpose: the clients end when they are told to, and
	// not with the context of the run.
	cmd := exec.CommandContext(context.Background(), program) //nolint:gosec // it is this one
	cmd.Env = append(os.Environ(), client.OrdersEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = &m.output, &m.output
	cmd.ExtraFiles = []*os.File{told} // which makes it client.ReportFile
	cmd.SysProcAttr = childAttr()
	cmd.WaitDelay = time.Second
	if m.work, err = cmd.StdinPipe(); err == nil {
		err = m.run(cmd, func() error { return j.read(reports) })
	}
	_ = told.Close() // the process has its own
	if err != nil {
		_ = reports.Close()
	}
	return err
}

// run starts the command, and closes done when it has ended and all that it has told
// was listened to.
func (m *member) run(cmd *exec.Cmd, listen func() error) error {
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
		listened := make(chan error, 1)
		go func() { listened <- listen() }()
		err = cmd.Wait()
		m.err = errors.Join(err, <-listened)
	}()
	return <-started
}

// ended reports whether the process has.
func (m *member) ended() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// kill ends the process, wherever it is, and returns when it is gone.
func (m *member) kill() {
	_ = m.child.Kill()
	<-m.done
}

// killAll is for the end of a run that has not come to its own.
func (c *Crew) killAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for number, m := range c.members {
		m.kill()
		delete(c.members, number)
	}
}

// String names the process and its clients.
func (m *member) String() string {
	return fmt.Sprintf("process %d (place %d, life %d)", m.number, m.place, m.life)
}

package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A monitor counts the operations inside handlers, the requests that wait for a lock,
// and the answers. It can also block operations at a gate. It is safe for concurrent
// use.
type monitor struct {
	mu      sync.Mutex
	now     snapshot
	gate    chan struct{} // closed: operations continue
	failing failure       // where the next operation fails
	changed chan struct{} // closed by the next update
}

// A snapshot has the counts since the latest reset.
type snapshot struct {
	Inside     int      // operations inside a handler
	MaxInside  int      // the maximum of Inside
	Operations []string // the operations, in the order of their start
	Waiting    int      // how many events of waiting requests the observer got
	Answered   int      // how many requests have their answers
	Recovered  int      // how many answers Redis has accepted late
}

// newMonitor returns a monitor with an open gate.
func newMonitor() *monitor {
	open := make(chan struct{})
	close(open)
	return &monitor{gate: open, changed: make(chan struct{})}
}

// reset clears the counts and closes the gate: operations that start after it block
// until open is called. open may be called twice.
func (m *monitor) reset() (open func()) {
	gate := make(chan struct{})
	m.update(func(now *snapshot) {
		*now = snapshot{Inside: now.Inside, MaxInside: now.Inside}
		m.gate, m.failing = gate, nowhere
	})
	return sync.OnceFunc(func() { close(gate) })
}

// clearingTime is how long a clearing takes at least. Operations that no lock keeps apart are
// then hardly ever inside one after the other by chance.
const clearingTime = time.Millisecond

// clearing is the clearing of the bank: it blocks while the gate is closed.
func (m *monitor) clearing(ctx context.Context, operation string) error {
	var gate <-chan struct{}
	m.update(func(now *snapshot) {
		now.Inside++
		now.MaxInside = max(now.MaxInside, now.Inside)
		now.Operations = append(now.Operations, operation)
		gate = m.gate
	})
	defer m.update(func(now *snapshot) { now.Inside-- })
	select {
	case <-gate:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	time.Sleep(clearingTime)
	return m.failAt(beforeCharge)
}

// booked is what follows a transfer.
func (m *monitor) booked() error { return m.failAt(afterCharge) }

// A failure is a place where a payment fails.
type failure int

const (
	nowhere failure = iota
	beforeCharge
	afterCharge
)

// failNext makes the next transfer fail at a place.
func (m *monitor) failNext(at failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = at
}

// failAt returns an error if a transfer is to fail here, once.
func (m *monitor) failAt(here failure) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing != here {
		return nil
	}
	m.failing = nowhere
	return errBroken
}

// observe is the observer of the Locker.
func (m *monitor) observe(event core.Event) {
	switch {
	case event.Kind == core.Waiting:
		m.update(func(now *snapshot) { now.Waiting++ })
	case event.Kind == core.Committed && event.Repeated && event.Err == nil:
		m.update(func(now *snapshot) { now.Recovered++ })
	}
}

// answered counts an answer.
func (m *monitor) answered() {
	m.update(func(now *snapshot) { now.Answered++ })
}

// waitFor waits until the counts fulfil the condition. If ctx ends first, it returns
// the cause.
func (m *monitor) waitFor(ctx context.Context, condition func(snapshot) bool) error {
	for {
		now, changed := m.read()
		if condition(now) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// snapshot returns the current counts.
func (m *monitor) snapshot() snapshot {
	now, _ := m.read()
	return now
}

func (m *monitor) read() (now snapshot, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now = m.now
	now.Operations = slices.Clone(now.Operations)
	return now, m.changed
}

func (m *monitor) update(how func(now *snapshot)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	how(&m.now)
	close(m.changed)
	m.changed = make(chan struct{})
}

// Package exclusion checks from outside whether a lock excludes. All processes of a run map one
// page of memory. A holder writes its number there, so a second holder finds it, whatever the
// lock reports.
package exclusion

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A Memory is a page that several processes map. It is safe for concurrent use by all of them,
// until Close.
type Memory struct {
	bytes []byte
	*page
}

// page is the layout of the memory. Each value has its own cache line.
type page struct {
	holder     atomic.Int64 // the holder, or 0
	_          [56]byte
	last       atomic.Int64 // the previous holder
	_          [56]byte
	sharers    atomic.Int64 // how many holders of shared locks there are
	_          [56]byte
	turns      atomic.Int64 // incremented in two steps, so that two holders lose one
	_          [56]byte
	violations atomic.Int64
	_          [56]byte
	arrived    atomic.Int64 // processes at the barrier, over all rounds
	_          [56]byte
	start      atomic.Int64 // the start of the round, in Unix nanoseconds
	_          [56]byte
	round      atomic.Int64 // the round that begins at start, from 1
	_          [56]byte
}

// Create makes the file at path a page of zeros, and maps it.
func Create(path string) (*Memory, error) {
	if err := os.WriteFile(path, make([]byte, os.Getpagesize()), 0o600); err != nil {
		return nil, err
	}
	return Open(path)
}

// Open maps a file that Create has made.
func Open(path string) (*Memory, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // the path is the parent's
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the mapping stays
	bytes, err := syscall.Mmap(int(file.Fd()), 0, os.Getpagesize(),
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	layout := (*page)(unsafe.Pointer(&bytes[0])) //nolint:gosec // the page is aligned, and larger than the layout
	return &Memory{bytes, layout}, nil
}

// Close ends the mapping. The Memory must not be used after it.
func (m *Memory) Close() error { return syscall.Munmap(m.bytes) }

// Enter is called by a holder after it got the lock, with a number above 0 that is unique in the
// run. handoff is true if another goroutine was the previous holder.
func (m *Memory) Enter(holder int64) (handoff bool) {
	if !m.holder.CompareAndSwap(0, holder) || m.sharers.Load() > 0 {
		m.violations.Add(1)
	}
	return m.last.Swap(holder) != holder
}

// Leave is called by a holder before it releases the lock.
func (m *Memory) Leave(holder int64) {
	m.turns.Store(m.turns.Load() + 1) // in two steps, on purpose
	if !m.holder.CompareAndSwap(holder, 0) {
		m.violations.Add(1)
	}
}

// EnterShared is Enter for a lock that at most that many may hold at a time.
func (m *Memory) EnterShared(holder int64, limit int) (handoff bool) {
	if m.sharers.Add(1) > int64(limit) || m.holder.Load() != 0 {
		m.violations.Add(1)
	}
	return m.last.Swap(holder) != holder
}

// LeaveShared is Leave for such a lock.
func (m *Memory) LeaveShared() {
	m.turns.Add(1)
	m.sharers.Add(-1)
}

// Violations returns how often too many goroutines held the lock at a time: as seen by holders,
// and as missing turns.
func (m *Memory) Violations(taken int64) int64 {
	return m.violations.Load() + max(0, taken-m.turns.Load())
}

const (
	// barrierPoll is how often the barrier is checked.
	barrierPoll = 200 * time.Microsecond
	// barrierLead is the time from the last arrival to the start of the round. All
	// processes must notice the start within it.
	barrierLead = 3 * time.Millisecond
)

// Await returns when that many processes have called it for this round, at the start of the
// round, which is the same in all processes. Rounds count from 1. It returns ctx's error if
// ctx ends before.
func (m *Memory) Await(ctx context.Context, processes, round int) (time.Time, error) {
	if m.arrived.Add(1) == int64(processes)*int64(round) {
		m.start.Store(time.Now().Add(barrierLead).UnixNano())
		m.round.Store(int64(round))
	}
	for m.round.Load() < int64(round) {
		if err := pause(ctx, barrierPoll); err != nil {
			return time.Time{}, err
		}
	}
	start := time.Unix(0, m.start.Load())
	return start, pause(ctx, time.Until(start))
}

// pause returns after d, or with ctx's error if ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

package shared

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// A Memory is a page that several processes map. It is safe for concurrent use by all of
// them, until Close.
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

// Create makes a file of zeros that Open can map.
func Create(path string) error {
	return os.WriteFile(path, make([]byte, os.Getpagesize()), 0o600)
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

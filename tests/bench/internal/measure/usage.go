package measure

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// A Usage is what this process has used since it began.
type Usage struct {
	CPU         time.Duration // user and system, all threads
	Allocations int64         // objects on the heap, freed ones too
}

// Used returns what this process has used so far. It stops all goroutines for
// a moment.
func Used() (Usage, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return Usage{}, fmt.Errorf("getrusage: %w", err)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return Usage{
		CPU:         time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		Allocations: int64(memory.Mallocs), //nolint:gosec // far below the limit
	}, nil
}

// Since returns what was used between an earlier moment and this one.
func (u Usage) Since(earlier Usage) Usage {
	return Usage{CPU: u.CPU - earlier.CPU, Allocations: u.Allocations - earlier.Allocations}
}

// LiveMemory returns the bytes of heap and stacks that are in use after garbage
// has been collected. It takes a while.
func LiveMemory() int64 {
	runtime.GC()
	runtime.GC() // the first one leaves what sync.Pools hold
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc + memory.StackInuse) //nolint:gosec // far below the limit
}

package measure

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// A Usage is what this process has used since it started.
type Usage struct {
	CPU         time.Duration // user and system, all threads
	Allocations int64         // objects on the heap, including freed ones
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

// Since returns the usage since an earlier one.
func (u Usage) Since(earlier Usage) Usage {
	return Usage{CPU: u.CPU - earlier.CPU, Allocations: u.Allocations - earlier.Allocations}
}

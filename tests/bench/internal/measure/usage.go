package measure

import (
	"runtime"
	"syscall"
	"time"
)

// A Usage is what this process has used since it started.
type Usage struct {
	CPU         time.Duration // user and system, all threads
	Allocations int64         // objects on the heap, including freed ones
	Memory      int64         // in use by the heap and by stacks
}

// Used returns what this process has used so far. It stops all goroutines for
// a moment.
func Used() Usage {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // it only fails for wrong arguments
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return Usage{
		CPU:         time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		Allocations: int64(memory.Mallocs),                       //nolint:gosec // far below the limit
		Memory:      int64(memory.HeapAlloc + memory.StackInuse), //nolint:gosec // as above
	}
}

// Since returns the usage since an earlier one.
func (u Usage) Since(earlier Usage) Usage {
	return Usage{u.CPU - earlier.CPU, u.Allocations - earlier.Allocations, u.Memory - earlier.Memory}
}

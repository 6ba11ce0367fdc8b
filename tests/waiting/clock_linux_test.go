package waiting

import (
	"syscall"
	"time"
	"unsafe"
)

// monotonic reads CLOCK_MONOTONIC, in ns: it is the same for all processes.
func monotonic() int64 {
	const clockMonotonic = 1
	var now syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	if errno != 0 {
		panic(errno)
	}
	return now.Nano()
}

// A clock turns the times of this process into those of monotonic. It is early
// by no more than its width.
type clock struct {
	base time.Time
	at   int64
}

// clockWidth is how long the two clocks may be read apart.
const clockWidth = 20 * time.Microsecond

func newClock() clock {
	for {
		at, base := monotonic(), time.Now()
		if monotonic()-at < clockWidth.Nanoseconds() {
			return clock{base, at}
		}
	}
}

// of returns a time with a monotonic reading as monotonic would have read it.
func (c clock) of(t time.Time) int64 { return c.at + t.Sub(c.base).Nanoseconds() }

// nap stands still for a time, more exactly than time.Sleep does in a process
// with nothing else to do.
func nap(d time.Duration) {
	if d > 0 {
		span := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&span, nil) // a signal may end it early
	}
}

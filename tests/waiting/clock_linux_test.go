package waiting

import (
	"syscall"
	"time"
	"unsafe"
)

// monotonic reads CLOCK_MONOTONIC, in nanoseconds. All processes of a host share it.
func monotonic() int64 {
	const clockMonotonic = 1
	var now syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	if errno != 0 {
		panic(errno)
	}
	return now.Nano()
}

// A clock converts the times of this process to those of monotonic. The result is early
// by at most clockError.
type clock struct {
	base time.Time
	at   int64
}

// clockError is the longest time between the readings of the two clocks.
const clockError = 20 * time.Microsecond

func newClock() clock {
	for {
		at, base := monotonic(), time.Now()
		if monotonic()-at < clockError.Nanoseconds() {
			return clock{base, at}
		}
	}
}

// of converts a time that has a monotonic reading.
func (c clock) of(t time.Time) int64 { return c.at + t.Sub(c.base).Nanoseconds() }

// sleep sleeps more exactly than time.Sleep does in an idle process.
func sleep(d time.Duration) {
	if d > 0 {
		span := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&span, nil) // a signal may end it early
	}
}

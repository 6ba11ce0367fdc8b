package waiting

import (
	"syscall"
	"time"
)

// sleep sleeps more exactly than time.Sleep does in an idle process.
func sleep(d time.Duration) {
	if d > 0 {
		span := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&span, nil) // a signal may end it early
	}
}

package suite

import (
	"time"

	"go.uber.org/goleak"
)

// lastDial is how long a closed client of go-redis may keep a goroutine. A client whose
// server was down dials once a second, and detects only then that it was closed.
const lastDial = 3 * time.Second

// Leaks waits at most this long until no goroutine is left, except those that the options of
// goleak ignore. It returns an error that names the goroutines that are left, or nil. goleak
// itself waits half a second, which is too short on a busy machine, and for clients of a server
// that was killed.
func Leaks(patience time.Duration, ignore ...goleak.Option) error {
	for begun := time.Now(); ; {
		err := goleak.Find(ignore...)
		if err == nil || time.Since(begun) > patience {
			return err
		}
	}
}

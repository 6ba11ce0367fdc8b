package suite

import (
	"time"

	"go.uber.org/goleak"
)

// lastDial is how long a closed client of go-redis may go on. A client whose server was
// away dials once a second, and notices only then that it was closed.
const lastDial = 3 * time.Second

// Leaks waits at most so long until no goroutine is left. It returns an error that names
// those that are, or nil. goleak itself waits half a second, which is too short for
// clients whose server has died, and for a busy machine.
func Leaks(patience time.Duration) error {
	for begun := time.Now(); ; {
		err := goleak.Find()
		if err == nil || time.Since(begun) > patience {
			return err
		}
	}
}

package redistest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// lastDial is how long a closed client of go-redis may go on. One whose server was away
// dials it once a second, and notices only then that it was closed.
const lastDial = 3 * time.Second

// VerifyTestMain runs the tests of a package, and fails if goroutines are left. It is
// goleak.VerifyTestMain with more patience than half a second: for tests whose servers
// die, and for those without servers, whose goroutines a busy machine is late to end.
func VerifyTestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := Leaks(lastDial); err != nil {
			fmt.Fprintf(os.Stderr, "goroutines are left: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Leaks waits for so long until no goroutine is left, and returns those that are, as
// an error, or nil.
func Leaks(patience time.Duration) error {
	for begun := time.Now(); ; {
		err := goleak.Find()
		if err == nil || time.Since(begun) > patience {
			return err
		}
	}
}

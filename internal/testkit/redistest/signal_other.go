//go:build !unix

package redistest

import (
	"errors"
	"os"
)

// stopChild fails: the system has no signal that freezes a process.
func stopChild(*os.Process) error { return errors.ErrUnsupported }

// continueChild fails: the system has no signal that thaws a process.
func continueChild(*os.Process) error { return errors.ErrUnsupported }

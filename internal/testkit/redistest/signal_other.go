//go:build !unix

package redistest

import (
	"errors"
	"os"
)

// stopChild fails: the system has no signal that stops a process.
func stopChild(*os.Process) error { return errors.ErrUnsupported }

// continueChild fails: the system has no signal that resumes a process.
func continueChild(*os.Process) error { return errors.ErrUnsupported }

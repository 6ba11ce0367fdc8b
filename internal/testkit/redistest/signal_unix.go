//go:build unix

package redistest

import (
	"os"
	"syscall"
)

// stopChild stops the process, which can neither catch nor ignore SIGSTOP.
func stopChild(child *os.Process) error { return child.Signal(syscall.SIGSTOP) }

// continueChild resumes a stopped process.
func continueChild(child *os.Process) error { return child.Signal(syscall.SIGCONT) }

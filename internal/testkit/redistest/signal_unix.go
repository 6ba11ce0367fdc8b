//go:build unix

package redistest

import (
	"os"
	"syscall"
)

// stopChild freezes the process: it can neither catch nor ignore SIGSTOP.
func stopChild(child *os.Process) error { return child.Signal(syscall.SIGSTOP) }

// continueChild lets a frozen process go on.
func continueChild(child *os.Process) error { return child.Signal(syscall.SIGCONT) }

package traffic

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// childAttr makes the kernel kill a client process when the campaign ends.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// stop requests that a process stops. Soon after, isStopped reports true.
func stop(child *os.Process) error { return child.Signal(syscall.SIGSTOP) }

func resume(child *os.Process) error { return child.Signal(syscall.SIGCONT) }

// dump makes a Go process print its goroutines and exit.
func dump(child *os.Process) error { return child.Signal(syscall.SIGQUIT) }

// isStopped reports whether the kernel has stopped the process.
func isStopped(child *os.Process) (bool, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child.Pid))
	if err != nil {
		return false, err
	}
	// The format is "pid (name) state ...", and the name may contain parentheses.
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T")), nil
}

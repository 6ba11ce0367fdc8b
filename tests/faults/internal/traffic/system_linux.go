package traffic

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// childAttr makes the kernel kill a client process when the campaign dies.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// stop makes a process stand still: soon, see standsStill.
func stop(child *os.Process) error { return child.Signal(syscall.SIGSTOP) }

// resume lets it go on.
func resume(child *os.Process) error { return child.Signal(syscall.SIGCONT) }

// dump makes a process of Go write down its goroutines and end.
func dump(child *os.Process) error { return child.Signal(syscall.SIGQUIT) }

// isStopped asks the kernel.
func isStopped(child *os.Process) (bool, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child.Pid))
	if err != nil {
		return false, err
	}
	// "pid (name) state ...", and the name may hold brackets itself.
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T")), nil
}

package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// childAttr makes the kernel kill the child when the test process ends without its cleanups: by
// the panic of a timeout, by kill -9, or because the build is interrupted.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// awaitStopped waits until the kernel reports that the child is stopped. The call that sends
// SIGSTOP returns earlier, and a server that answers one more command would make tests flaky.
func awaitStopped(p *process) error {
	deadline := time.Now().Add(readyTimeout)
	for time.Now().Before(deadline) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.child.Pid))
		if err != nil {
			return fmt.Errorf("read the state of the process: %w", err)
		}
		// "pid (name) state ...", and the name may contain brackets.
		state := stat[bytes.LastIndexByte(stat, ')')+1:]
		if bytes.HasPrefix(state, []byte(" T")) {
			return nil
		}
		select {
		case <-p.done:
			return errors.New("the process has ended")
		case <-time.After(time.Millisecond):
		}
	}
	return errors.New("the process does not stop")
}

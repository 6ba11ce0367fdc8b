package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// childAttr makes the kernel kill the child when the test process dies without
// running its cleanups (a timeout panic, kill -9, an interrupted build).
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// awaitStopped waits until the kernel reports that the child is stopped: the call that sends
// SIGSTOP returns before the child stops, and a server that answers one more command would
// make tests flaky.
func awaitStopped(p *process) error {
	deadline := time.Now().Add(readyTimeout)
	for time.Now().Before(deadline) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.child.Pid))
		if err != nil {
			return fmt.Errorf("read process state: %w", err)
		}
		// "pid (name) state ...", and the name may contain brackets.
		state := stat[bytes.LastIndexByte(stat, ')')+1:]
		if bytes.HasPrefix(state, []byte(" T")) {
			return nil
		}
		select {
		case <-p.done:
			return errors.New("process has exited")
		case <-time.After(time.Millisecond):
		}
	}
	return errors.New("process does not stop")
}

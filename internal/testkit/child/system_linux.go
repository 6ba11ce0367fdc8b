package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// pauseTimeout bounds how long a process takes to stand still.
const pauseTimeout = 30 * time.Second

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// awaitPaused waits until the kernel reports that the process is stopped: the call that
// sends SIGSTOP returns earlier.
func (p *Process) awaitPaused() error {
	for begun := time.Now(); time.Since(begun) < pauseTimeout; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
		if err != nil || p.HasEnded() {
			return errors.Join(errors.New("the process has ended"), err)
		}
		// The form is "pid (name) state ...", and the name may contain brackets.
		if bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T")) {
			return nil
		}
	}
	return fmt.Errorf("the process runs %v after SIGSTOP", pauseTimeout)
}

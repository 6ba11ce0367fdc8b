package subprocess

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

// childAttr makes the kernel kill the child when this process dies without running its
// cleanups: on a timeout's panic, on SIGKILL, when a build is interrupted.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// awaitPaused waits until the kernel reports that the process is stopped: the call that
// sends SIGSTOP returns earlier.
func (p *Process) awaitPaused() error {
	for begun := time.Now(); time.Since(begun) < pauseTimeout; time.Sleep(time.Millisecond) {
		state, err := stateOf(p.child.Pid)
		if err != nil || p.HasEnded() {
			return errors.Join(errors.New("the process has ended"), err)
		}
		if state == 'T' {
			return nil
		}
	}
	return fmt.Errorf("the process runs %v after SIGSTOP", pauseTimeout)
}

// stateOf returns the state of a process as proc(5) has it: T is stopped, Z is a zombie.
func stateOf(pid int) (byte, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The form is "pid (name) state ...", and the name may contain brackets.
	_, fields, found := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("/proc/%d/stat: %q", pid, stat)
	}
	return fields[0], nil
}

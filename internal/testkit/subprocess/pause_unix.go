//go:build unix

package subprocess

import "syscall"

// Pause stops the process (SIGSTOP). On Linux it returns when the process stands still.
func (p *Process) Pause() error {
	if err := p.child.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return p.awaitPaused()
}

// Resume lets a paused process go on (SIGCONT).
func (p *Process) Resume() error { return p.child.Signal(syscall.SIGCONT) }

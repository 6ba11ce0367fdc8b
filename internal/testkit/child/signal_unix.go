//go:build unix

package child

import "syscall"

// Pause stops the process (SIGSTOP). On Linux it returns when the process stands still.
func (p *Process) Pause() error {
	if err := p.handle.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return p.awaitPaused()
}

// Resume lets a paused process continue (SIGCONT). It has no effect on a process that runs.
func (p *Process) Resume() error { return p.handle.Signal(syscall.SIGCONT) }

// Dump makes a Go process print its goroutines and exit (SIGQUIT).
func (p *Process) Dump() error { return p.handle.Signal(syscall.SIGQUIT) }

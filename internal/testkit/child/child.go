// Package child runs a program as a child of this process. A test, or a program that tests, can
// pause the child and kill it.
//
// On Linux a child ends at the latest with this process, even if this process dies without its
// cleanups: by the panic of a timeout, by SIGKILL, or because a build is interrupted.
package child

import (
	"os"
	"os/exec"
	"runtime"
)

// A Process is a child of this process. It is safe for concurrent use.
type Process struct {
	handle *os.Process
	done   chan struct{}
	err    error // set before done is closed
}

// Start starts the command. The command must not be used any more.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = attributes()
	p := &Process{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		// The kernel ends the child when the thread that started it ends, not when this process
		// ends (golang/go#27505). So this thread stays for as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		p.handle = cmd.Process
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

// Pid returns the number of the process.
func (p *Process) Pid() int { return p.handle.Pid }

// Kill ends the process as a crash does, and returns when the process has ended. A paused
// process ends, too. Kill does nothing if the process has ended before: it cannot kill a later
// process with the same number.
func (p *Process) Kill() {
	_ = p.handle.Kill()
	<-p.done
}

// Wait waits until the process has ended. The error says how the process failed.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// HasEnded reports whether the process has ended.
func (p *Process) HasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

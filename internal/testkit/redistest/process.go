package redistest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// process is one run of redis-server. It is safe for concurrent use.
type process struct {
	child *os.Process
	done  chan struct{} // closed when the child is reaped
}

// startProcess runs the program with its output in the file logPath.
func startProcess(program, logPath string, args []string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // in the directory of the test
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	// The child has its own copy of the descriptor.
	defer func() { _ = log.Close() }()

	// The background context, because the context of the test ends before the cleanups.
	cmd := exec.CommandContext(context.Background(), program, args...) //nolint:gosec // the program is redis-server
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.SysProcAttr = childAttr()

	p := &process{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		// Pdeathsig fires when the thread that forked ends, not when the process ends
		// (golang/go#27505). So this thread stays as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()

		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.child = cmd.Process
		started <- nil
		_ = cmd.Wait() // kill ends it, so there is always an error
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return p, nil
}

// exited reports whether the child has ended and was reaped.
func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// pause stops the child, and returns when it is stopped.
func (p *process) pause() error {
	if err := stopChild(p.child); err != nil {
		return fmt.Errorf("stop process %d: %w", p.child.Pid, err)
	}
	return awaitStopped(p)
}

// resume resumes a stopped child. It has no effect on a running one.
func (p *process) resume() error {
	if err := continueChild(p.child); err != nil {
		return fmt.Errorf("continue process %d: %w", p.child.Pid, err)
	}
	return nil
}

// kill kills the child and waits until it is reaped. It signals the handle of the process,
// so it cannot kill a later process with the same number.
func (p *process) kill() {
	_ = p.resume() // some systems keep a signal for a stopped process pending
	_ = p.child.Kill()
	<-p.done
}

package redisserver

import (
	"context"
	"os"
	"os/exec"
	"runtime"
)

// A process is one run of redis-server.
type process struct {
	child *os.Process
	done  chan struct{} // closed when it has ended
}

// startProcess starts the program with its output in a file. The process outlives ctx,
// which ends before the cleanup.
func startProcess(ctx context.Context, program, logPath string, args ...string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // in a directory of our own
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has a copy

	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...) //nolint:gosec // the program is redis-server
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = diesWithParent()

	p := &process{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		// For the kernel, the parent has ended when the thread that forked ends
		// (golang/go#27505): keep the thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.child = cmd.Process
		started <- nil
		_ = cmd.Wait() // the process is always killed
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

// kill ends the process and waits until it is gone.
func (p *process) kill() {
	_ = p.child.Kill()
	<-p.done
}

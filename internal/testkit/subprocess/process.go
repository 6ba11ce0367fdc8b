package subprocess

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// childTimeout is the -timeout of a child. It bounds a child whose parent cannot end it.
const childTimeout = 30 * time.Minute

// A Process is a child of this process. It is safe for concurrent use.
type Process struct {
	output
	child *os.Process
	stdin io.Closer
	done  chan struct{}
	err   error // set before done is closed
}

// Start runs the test of that name in a new process, which receives the orders. The
// process is killed at the end of the calling test.
func Start(tb testing.TB, test string, orders any) *Process {
	tb.Helper()
	text, err := json.Marshal(orders)
	if err != nil {
		tb.Fatalf("orders of %s: %v", test, err)
	}
	cmd := exec.CommandContext(tb.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.timeout="+childTimeout.String()) //nolint:gosec // this binary
	cmd.Env = append(os.Environ(), ordersEnv+"="+string(text))
	cmd.SysProcAttr = childAttr()
	cmd.WaitDelay = time.Second // in case a process that the child started keeps the output open
	p := &Process{done: make(chan struct{})}
	p.reports = map[string]int{}
	cmd.Stdout, cmd.Stderr = &lineWriter{output: &p.output}, &p.output
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		// The kernel sends Pdeathsig when the thread that forked ends, not when the
		// process ends (golang/go#27505). So this thread lives as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		p.child = cmd.Process
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		tb.Fatalf("start %s: %v", test, err)
	}
	tb.Cleanup(p.Kill)
	return p
}

// Kill ends the process as a crash does, and returns when the process has ended. A paused
// process ends, too. Kill does nothing if the process has ended before.
func (p *Process) Kill() {
	_ = p.child.Kill()
	<-p.done
}

// Stop makes [AwaitStop] return in the process, and waits until the process has ended.
// The error is that of [Process.Wait].
func (p *Process) Stop() error {
	_ = p.stdin.Close()
	return p.Wait()
}

// Wait waits until the process has ended. The error says how it failed, with its output;
// nil means that its test passed.
func (p *Process) Wait() error {
	<-p.done
	if p.err != nil {
		return fmt.Errorf("process %d: %w\n%s", p.child.Pid, p.err, p.Output())
	}
	return nil
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

package subprocess

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/child"
)

// childTimeout is the -timeout of a child. It bounds a child whose parent cannot end it.
const childTimeout = 30 * time.Minute

// A Process is a child of this process that runs a test. It is safe for concurrent use.
type Process struct {
	*child.Process
	output
	stdin io.Closer
}

// Start runs the test of that name in a new process, which receives the orders. The
// process is killed at the end of the calling test.
func Start(tb testing.TB, test string, orders any) *Process {
	tb.Helper()
	return StartOf(tb, os.Args[0], test, orders)
}

// StartOf is Start for a test of another test binary.
func StartOf(tb testing.TB, binary, test string, orders any) *Process {
	tb.Helper()
	text, err := json.Marshal(orders)
	if err != nil {
		tb.Fatalf("orders of %s: %v", test, err)
	}
	cmd := exec.CommandContext(tb.Context(), binary, "-test.run=^"+test+"$", "-test.timeout="+childTimeout.String()) //nolint:gosec // a binary of tests
	cmd.Env = append(os.Environ(), ordersEnv+"="+string(text))
	cmd.WaitDelay = time.Second // in case a process that the child started keeps the output open
	p := &Process{}
	p.reports = map[string]int{}
	cmd.Stdout, cmd.Stderr = &lineWriter{output: &p.output}, &p.output
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	if p.Process, err = child.Start(cmd); err != nil {
		tb.Fatalf("start %s: %v", test, err)
	}
	tb.Cleanup(p.Kill)
	return p
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
	if err := p.Process.Wait(); err != nil {
		return fmt.Errorf("process %d: %w\n%s", p.Pid(), err, p.Output())
	}
	return nil
}

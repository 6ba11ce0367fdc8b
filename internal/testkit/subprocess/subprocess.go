// Package subprocess runs a test of the running test binary in a process of its own, so
// that tests can kill, pause and count real processes.
//
// The parent calls [Start] with the name of a test and its orders, which are any value
// that JSON can encode. In the child, that test calls [Orders], which returns the orders;
// in every other process Orders skips the test. The child reports to its parent by
// [Report], and serves until [AwaitStop] returns.
//
// A child ends at the latest with the test that started it. On Linux it also ends when the
// test binary dies without running its cleanups.
package subprocess

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
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

// ordersEnv carries the orders of a child, as JSON.
const ordersEnv = "REQLOCK_SUBPROCESS_ORDERS"

// reportMark starts each line of a child's standard output that is a report.
const reportMark = "@ "

// Orders returns the orders of this process. It skips the test where [Start] did not
// start the process.
func Orders[T any](tb testing.TB) (orders T) {
	tb.Helper()
	text := os.Getenv(ordersEnv)
	if text == "" {
		tb.Skip("runs only in processes that other tests start")
	}
	if err := json.Unmarshal([]byte(text), &orders); err != nil {
		tb.Fatalf("orders: %v", err)
	}
	return orders
}

// Report sends a line to the parent: the fields, separated by spaces. The parent receives
// the line even if this process is killed right after the call. Report is safe for
// concurrent use.
func Report(fields ...string) {
	_, _ = fmt.Println(reportMark + strings.Join(fields, " "))
}

// AwaitStop returns when the parent calls [Process.Stop], or dies.
func AwaitStop() { _, _ = io.Copy(io.Discard, os.Stdin) }

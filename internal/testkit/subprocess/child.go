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
	"strings"
	"testing"
)

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

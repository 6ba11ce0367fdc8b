package load

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

const (
	fullRequests = 5000
	fewRequests  = 500
	// perAccount is the number of requests for each account.
	perAccount = 5
)

// size returns the number of requests in flight, a multiple of perAccount.
func size(t *testing.T) int {
	t.Helper()
	text, set := os.LookupEnv("REQLOCK_LOAD")
	if !set {
		return suite.Size(fewRequests, fullRequests)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < perAccount {
		t.Fatalf("REQLOCK_LOAD=%s: it is how many requests there are, at least %d", text, perAccount)
	}
	return n - n%perAccount
}

// allowFiles raises the limit of open files of the process.
func allowFiles(t *testing.T, n uint64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur >= n {
		return
	}
	if limit.Max < n {
		t.Fatalf("this test opens %d files, and ulimit -Hn is %d", n, limit.Max)
	}
	raised := syscall.Rlimit{Cur: n, Max: limit.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err != nil {
		t.Fatalf("raise ulimit -n to %d: %v", n, err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	})
}

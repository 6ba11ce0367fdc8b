package redistest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// shared holds the deployments that the tests of this process share, by their kind.
var shared [len(kindNames)]struct {
	mu         sync.Mutex
	deployment *Deployment // nil until the first test needs it
}

// Shared returns the servers of the kind that all tests of the package share. The first
// call starts them. They end after the last test of the package, which must have
// [suite.Main] or [suite.Run] as its TestMain.
//
// A test on shared servers uses keys that no other test uses (see [OwnPrefix]), because
// parallel tests run beside it and because -count repeats the test on the same servers.
// It must not kill, pause, restart, reconfigure or flush a server, replace a master, move
// a slot or count commands of a server. It may start a proxy of its own and do anything
// to that.
//
// If the servers cannot be started, Shared fails the test tb. A method of the deployment
// that fails later panics, because the deployment belongs to no test. Shared is safe for
// concurrent use by different tests.
func Shared(tb testing.TB, kind Kind) *Deployment {
	tb.Helper()
	entry := &shared[kind]
	entry.mu.Lock()
	defer entry.mu.Unlock() // also if the start fails: the next test tries again
	if entry.deployment == nil {
		lifetime := &processLifetime{TB: tb, starting: true}
		deployment := kind.Start(lifetime)
		lifetime.starting = false
		entry.deployment = deployment
	}
	return entry.deployment
}

// processLifetime is the testing.TB of shared servers: its cleanups run after the last
// test of the package.
type processLifetime struct {
	testing.TB // the test that starts the servers

	starting bool // false once the servers run; no goroutine of theirs reads it
}

// Helper does nothing: the caller of a shared server is not always the same test.
func (*processLifetime) Helper() {}

// Context returns a context that does not end.
func (*processLifetime) Context() context.Context { return context.Background() }

// Cleanup defers the function until all tests of the package are over.
func (*processLifetime) Cleanup(function func()) { suite.OnExit(function) }

// TempDir returns a new folder that exists until all tests of the package are over.
func (l *processLifetime) TempDir() string {
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		l.Fatalf("make a folder for a shared server: %v", err)
	}
	suite.OnExit(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Fatalf fails the test that starts the servers, and panics if they have started.
func (l *processLifetime) Fatalf(format string, args ...any) {
	if l.starting {
		l.TB.Helper()
		l.TB.Fatalf(format, args...)
	}
	panic("shared servers: " + fmt.Sprintf(format, args...))
}

// Errorf does what Fatalf does.
func (l *processLifetime) Errorf(format string, args ...any) { l.Fatalf(format, args...) }

// ownPrefixes counts the prefixes that OwnPrefix has returned.
var ownPrefixes atomic.Int64

// OwnPrefix returns a prefix of keys that no other call in this process returns. The
// [Rights] cover it.
func OwnPrefix() string {
	return "reqlock:" + strconv.FormatInt(ownPrefixes.Add(1), 10) + ":"
}

// Package stage is a testing.TB for a program: it lets the campaign use what was
// written for tests, the servers and the proxies of redistest, outside of go
// test.
package programtb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A TB is where one run takes place. It is safe for concurrent use as far as
// the methods of testing.TB are. What those do that are not written here is not
// defined.
type TB struct {
	testing.TB // nil: it is here for its unexported method alone

	name string
	ctx  context.Context

	mu       sync.Mutex
	log      strings.Builder
	failed   bool
	skipped  bool
	cleanups []func()
	dirs     int
	root     string // of all temporary directories; "" until the first
}

// A Result is what became of a run.
type Result struct {
	Failed, Skipped bool
	Log             string
}

// Run runs f on a stage of its own, then its cleanups, last first, and returns
// when all are done. The stage's context is ctx, and ends before the cleanups. A
// panic of f is a failure.
func Run(ctx context.Context, name string, f func(tb testing.TB)) Result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &TB{name: name, ctx: ctx}
	s.onGoroutine(func() { f(s) })
	cancel()
	for cleanup := s.lastCleanup(); cleanup != nil; cleanup = s.lastCleanup() {
		s.onGoroutine(cleanup)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root != "" {
		if err := os.RemoveAll(s.root); err != nil {
			s.failed = true
			fmt.Fprintln(&s.log, err)
		}
	}
	return Result{Failed: s.failed, Skipped: s.skipped, Log: s.log.String()}
}

// onGoroutine runs f on a goroutine of its own, which FailNow may end.
func (s *TB) onGoroutine(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				s.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		f()
	}()
	<-done
}

func (s *TB) lastCleanup() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.cleanups)
	if n == 0 {
		return nil
	}
	last := s.cleanups[n-1]
	s.cleanups = slices.Delete(s.cleanups, n-1, n)
	return last
}

func (s *TB) write(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(&s.log, strings.TrimRight(line, "\n"))
}

// Name is the name of the run.
func (s *TB) Name() string { return s.name }

// Context ends before the cleanups.
func (s *TB) Context() context.Context { return s.ctx }

// Helper does nothing: no lines of code are logged.
func (s *TB) Helper() {}

// Cleanup registers f, to run after the run.
func (s *TB) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

// Log writes to the log of the run.
func (s *TB) Log(args ...any) { s.write(fmt.Sprintln(args...)) }

// Logf writes to the log of the run.
func (s *TB) Logf(format string, args ...any) { s.write(fmt.Sprintf(format, args...)) }

// Fail makes the run a failure.
func (s *TB) Fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = true
}

// FailNow makes the run a failure, and ends its goroutine.
func (s *TB) FailNow() {
	s.Fail()
	runtime.Goexit()
}

// Failed reports whether the run is a failure.
func (s *TB) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Error is Log and Fail.
func (s *TB) Error(args ...any) { s.Log(args...); s.Fail() }

// Errorf is Logf and Fail.
func (s *TB) Errorf(format string, args ...any) { s.Logf(format, args...); s.Fail() }

// Fatal is Log and FailNow.
func (s *TB) Fatal(args ...any) { s.Log(args...); s.FailNow() }

// Fatalf is Logf and FailNow.
func (s *TB) Fatalf(format string, args ...any) { s.Logf(format, args...); s.FailNow() }

// SkipNow ends the goroutine of a run that cannot take place.
func (s *TB) SkipNow() {
	s.mu.Lock()
	s.skipped = true
	s.mu.Unlock()
	runtime.Goexit()
}

// Skip is Log and SkipNow.
func (s *TB) Skip(args ...any) { s.Log(args...); s.SkipNow() }

// Skipf is Logf and SkipNow.
func (s *TB) Skipf(format string, args ...any) { s.Logf(format, args...); s.SkipNow() }

// Skipped reports whether the run could not take place.
func (s *TB) Skipped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skipped
}

// TempDir makes a directory that is removed after the cleanups.
func (s *TB) TempDir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.root == "" {
		if s.root, err = os.MkdirTemp("", "faults-"); err != nil {
			panic(err)
		}
	}
	s.dirs++
	dir := filepath.Join(s.root, fmt.Sprintf("%03d", s.dirs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		panic(err)
	}
	return dir
}

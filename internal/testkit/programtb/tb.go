// Package programtb is a testing.TB for a program. With it a program uses the servers and proxies
// of redistest outside of go test.
package programtb

import (
	"context"
	"errors"
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

// A TB is the testing.TB of one run. Its methods are safe for concurrent use where those of
// testing.TB are. Methods of testing.TB that TB does not define panic.
type TB struct {
	testing.TB // nil: only its unexported method is needed

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

// A Result is the result of a run.
type Result struct {
	Failed, Skipped bool
	Log             string
}

// Err returns the log as an error if the run has failed or was skipped.
func (r Result) Err() error {
	if !r.Failed && !r.Skipped {
		return nil
	}
	return errors.New(strings.TrimSpace(r.Log))
}

// Run calls f with a new TB, then its cleanups, the last one first, and returns when all
// have returned. The context of the TB is derived from ctx, and ends before the cleanups.
// If f panics, or ends its goroutine by the FailNow of another TB, the run has failed.
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

// onGoroutine calls f on another goroutine, which FailNow may end.
func (s *TB) onGoroutine(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		hasReturned := false
		defer func() {
			switch r := recover(); {
			case r != nil:
				s.Errorf("panic: %v\n%s", r, debug.Stack())
			case !hasReturned && !s.Failed() && !s.Skipped():
				s.Errorf("%s has ended by the FailNow or SkipNow of another TB", s.name)
			}
		}()
		f()
		hasReturned = true
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

// Name returns the name of the run.
func (s *TB) Name() string { return s.name }

// Context returns a context that ends before the cleanups.
func (s *TB) Context() context.Context { return s.ctx }

// Helper does nothing: the log has no lines of code.
func (s *TB) Helper() {}

// Cleanup registers f to run after the run.
func (s *TB) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

// Log writes to the log of the run.
func (s *TB) Log(args ...any) { s.write(fmt.Sprintln(args...)) }

// Logf writes to the log of the run.
func (s *TB) Logf(format string, args ...any) { s.write(fmt.Sprintf(format, args...)) }

// Fail marks the run as failed.
func (s *TB) Fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = true
}

// FailNow marks the run as failed, and ends its goroutine.
func (s *TB) FailNow() {
	s.Fail()
	runtime.Goexit()
}

// Failed reports whether the run has failed.
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

// SkipNow marks the run as skipped, and ends its goroutine.
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

// Skipped reports whether the run was skipped.
func (s *TB) Skipped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skipped
}

// TempDir creates a directory that is removed after the cleanups.
func (s *TB) TempDir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.root == "" {
		if s.root, err = os.MkdirTemp("", "reqlock-"); err != nil {
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

package locktest_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/reqlock/reqlock/core/locktest"
)

// A recorder is a testing.TB that records the message of Fatalf. end runs its cleanups.
type recorder struct {
	testing.TB // nil: the methods that are not defined below must not be called
	cleanups   []func()
	fatal      string
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// end runs the cleanups, the last one first, as the end of a test does.
func (r *recorder) end() {
	for len(r.cleanups) > 0 {
		last := len(r.cleanups) - 1
		f := r.cleanups[last]
		r.cleanups = r.cleanups[:last]
		f()
	}
}

// fatalOf runs a test to its end. It returns the message of Fatalf, or "" if the test passed.
func fatalOf(test func(tb testing.TB, locks *locktest.Locks)) string {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.end()
		test(r, locktest.New(r))
	}()
	<-done
	return r.fatal
}

package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// A request represents the request of a framework.
type request struct{ account string }

var byAccount = core.Getter(func(r request) string { return r.account }).Named("account")

// enter runs a request as an adapter does and returns its refusal.
func enter(ctx context.Context, l *core.Locker, r request, run func(ctx context.Context)) core.Refusal {
	ctx, release, err := core.Enter(ctx, l, r, byAccount)
	if err != nil {
		refusal, _ := core.RefusalOf(err)
		return refusal
	}
	defer release()
	run(ctx)
	return core.Refusal{Code: "ran"}
}

// both runs a parallel test outside a bubble and inside one. The results must be the same.
func both(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	t.Run("clock", func(t *testing.T) {
		t.Parallel()
		test(t)
	})
	t.Run("bubble", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

// bubble runs a parallel test in a synctest bubble. elapsed returns the time since the test began.
func bubble(t *testing.T, test func(t *testing.T, elapsed func() time.Duration)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		test(t, func() time.Duration { return time.Since(start) })
	})
}

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

// noError fails the test, and ends it, if there is an error. Call it on the goroutine of the test.
func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError fails the test unless err is of the kind.
func wantError(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got error %v, want %v", err, kind)
	}
}

// errorOf returns the error of a call that also returns something else.
func errorOf[T any](_ T, err error) error { return err }

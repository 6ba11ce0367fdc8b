package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

const (
	// Patience is how long a test waits for an event before it fails.
	Patience = 10 * time.Second
	// LongBound is a bound or a timeout that must not end during a test.
	LongBound = 3 * Patience
)

// Await runs a transition, waits until it calls done, and returns the arguments of that call.
func Await[T any](do func(done func(T, error))) (T, error) {
	type result struct {
		answer T
		err    error
	}
	answered := make(chan result, 1)
	do(func(answer T, err error) { answered <- result{answer, err} })
	r := <-answered
	return r.answer, r.err
}

// AsFault returns the store.Fault in the error. It fails the test if there is none, or if the
// error matches the errors of a context, which only the caller's own context may cause.
func AsFault(t *testing.T, err error) *store.Fault {
	t.Helper()
	var fault *store.Fault
	if !errors.As(err, &fault) {
		t.Fatalf("got %v, want a fault", err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("the fault %v matches an error of a context", err)
	}
	return fault
}

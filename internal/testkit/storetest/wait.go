package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// patience is after how long what does not happen is taken for never; bounds of
// commands that are not to end by themselves are longer than twice that.
const (
	Patience  = 10 * time.Second
	LongBound = 3 * Patience
)

// Receive waits for what must come in time.
func Receive[T any](t *testing.T, what string, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(Patience):
		t.Fatalf("not so in time: %s", what)
	}
	return got
}

// Await returns what a transition was answered.
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

// AsFault returns the error as the fault that it must be.
func AsFault(t *testing.T, err error) *store.Fault {
	t.Helper()
	var fault *store.Fault
	if !errors.As(err, &fault) {
		t.Fatalf("got %v, want a fault", err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("the fault %v poses as the end of the caller's context", err)
	}
	return fault
}

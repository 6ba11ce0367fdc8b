// Package storetest has what the tests of the packages under internal/redis share: requests
// and tokens, the state of a lock in Redis, clients behind proxies, and hooks for go-redis.
package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

const (
	// Patience is how late a busy machine may be with what must happen at once.
	Patience = 10 * time.Second
	// LongBound is a bound or a timeout that must not cause what a test waits for. A call is sent
	// again after half of its bound: a test notices that by a limit of Patience.
	LongBound = 3 * Patience
)

// errNoAnswer is the error of a transition that does not call done.
var errNoAnswer = errors.New("the transition has not called done")

// Await runs a transition, waits until it calls done, and returns the arguments of that call. If
// that takes longer than twice LongBound, Await fails the test and returns an error. Call it
// during the test, on any goroutine.
func Await[T any](tb testing.TB, do func(done func(T, error))) (answer T, err error) {
	tb.Helper()
	type result struct {
		answer T
		err    error
	}
	answered := make(chan result, 1)
	do(func(answer T, err error) { answered <- result{answer, err} })
	timer := time.NewTimer(2 * LongBound)
	defer timer.Stop()
	select {
	case r := <-answered:
		return r.answer, r.err
	case <-timer.C:
		tb.Errorf("after %v: %v", 2*LongBound, errNoAnswer)
		return answer, errNoAnswer
	}
}

// A Closer is a store, as CloseAtEnd uses it.
type Closer interface {
	Close(ctx context.Context) error
}

// CloseAtEnd closes the store after the test. It fails the test if that takes longer than twice
// LongBound.
func CloseAtEnd(tb testing.TB, s Closer) {
	tb.Helper()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*LongBound)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
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

// ForgedHints are messages that the process Me must not decode as hints.
var ForgedHints = []string{
	"", " ", "  ", "k", "p:k", Me1, Me1 + " ", Me1 + "p:k", " " + Me1 + " p:k", Bob1 + " p:k",
	Me + " p:k", Me + ": p:k", Me + ":x p:k", Me + ":-1 p:k", Me + ":+1 p:k", Me + ":1e3 p:k", Me + ":1_0 p:k",
	Me + ":01 p:k", Me + ":00 p:k", Me + ":02017 p:k", Me + ":00-1 p:k", Me + ":99999999999999999999 p:k", Me[1:] + ":1 p:k", "a" + Me1 + " p:k", strings.ToUpper(Me1) + " p:k",
	"\x00" + Me1 + " p:k", strings.Repeat("x", 1<<16),
}

package suite

import (
	"testing"
	"time"
)

const (
	// patience bounds the wait for a condition that must hold. A test that passes never
	// takes this long, so it has room for a very busy machine.
	patience = 60 * time.Second
	// shortPause is the pause after the first check of a condition. The pause grows to
	// longPause, but only to a tenth of the time so far: so the end of a wait is noticed at
	// most a tenth too late.
	shortPause = time.Millisecond
	longPause  = 10 * time.Millisecond
)

// Eventually returns as soon as the condition holds. It fails the test, with the text what,
// if the condition does not hold within a minute. Call it on the goroutine of the test, also
// in a bubble of synctest. It calls the condition on the same goroutine.
func Eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	if !holdsWithin(patience, condition) {
		tb.Fatalf("after %v, still not: %s", patience, what)
	}
}

// EventuallyAnywhere is Eventually for any goroutine, for example that of a handler. If the condition
// does not hold within ten seconds, EventuallyAnywhere fails the test and returns. So the handler
// returns, and its client gets a reply.
func EventuallyAnywhere(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	if !holdsWithin(PatienceOfHandlers, condition) {
		tb.Errorf("after %v, still not: %s", PatienceOfHandlers, what)
	}
}

func holdsWithin(limit time.Duration, condition func() bool) bool {
	for begun := time.Now(); !condition(); {
		waited := time.Since(begun)
		if waited > limit {
			return false
		}
		time.Sleep(min(max(waited/10, shortPause), longPause))
	}
	return true
}

// Every returns a condition for Eventually that holds when the given one does, and that is
// checked only once in each pause. It is for a condition that sends commands or requests and
// may take seconds: a check each millisecond would keep a core busy.
func Every(pause time.Duration, condition func() bool) func() bool {
	var checked time.Time
	return func() bool {
		if time.Since(checked) < pause {
			return false
		}
		checked = time.Now()
		return condition()
	}
}

// IsClosed reports whether a channel, on which nothing is sent, is closed. It is safe for
// concurrent use.
func IsClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// AwaitClosed is Receive for a channel that is only closed.
func AwaitClosed(tb testing.TB, what string, channel <-chan struct{}) {
	tb.Helper()
	Receive(tb, what, channel)
}

// Receive returns the next value of the channel. It fails the test, with the text what, if that
// takes longer than a minute. Call it on the goroutine of the test. It may be called in a bubble of
// synctest.
func Receive[T any](tb testing.TB, what string, from <-chan T) (got T) {
	tb.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case got = <-from:
	case <-timer.C:
		tb.Fatalf("after %v, still not: %s", patience, what)
	}
	return got
}

// PatienceOfHandlers bounds the wait of a handler. The deadline of the client of a test must be
// longer, so that the handler reports its failure while the test runs.
const PatienceOfHandlers = 10 * time.Second

// ReceiveAnywhere receives like Receive, on any goroutine, such as that of a handler. If the value
// does not come within ten seconds, it fails the test and returns the zero value. So the handler
// returns, and its client gets a reply.
func ReceiveAnywhere[T any](tb testing.TB, what string, from <-chan T) (got T) {
	tb.Helper()
	timer := time.NewTimer(PatienceOfHandlers)
	defer timer.Stop()
	select {
	case got = <-from:
	case <-timer.C:
		tb.Errorf("after %v, still not: %s", PatienceOfHandlers, what)
	}
	return got
}

package suite

import (
	"testing"
	"time"
)

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

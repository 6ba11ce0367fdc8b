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

// AwaitClosed returns as soon as the channel is closed. It fails the test, with the text
// what, if that takes longer than a minute. Call it on the goroutine of the test.
func AwaitClosed(tb testing.TB, what string, channel <-chan struct{}) {
	tb.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-channel:
	case <-timer.C:
		tb.Fatalf("after %v, still not: %s", patience, what)
	}
}

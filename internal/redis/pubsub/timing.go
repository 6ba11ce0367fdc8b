package pubsub

import (
	"time"

	"github.com/reqlock/reqlock/internal/backoff"
)

// timing are the durations and timeouts of subscriptions.
type timing struct {
	linger       time.Duration // how long a subscription outlives its last listener
	pingAfter    time.Duration // the time without data after which the server gets a PING
	replyTimeout time.Duration // the timeout of a reply
	minBackoff   time.Duration // the pause after the first failed connection
	maxBackoff   time.Duration // the longest pause
	settleTime   time.Duration // how long the master of a new channel is checked again
}

// defaultTiming detects within three seconds that a connection is dead without having been
// closed.
func defaultTiming() timing {
	return timing{
		linger:       5 * time.Second,
		pingAfter:    2 * time.Second,
		replyTimeout: time.Second,
		minBackoff:   25 * time.Millisecond,
		maxBackoff:   time.Second,
		settleTime:   3 * time.Second,
	}
}

// pauseAfter returns the pause after that many failed tries.
func (t timing) pauseAfter(tries int) time.Duration {
	return backoff.Pause(tries, t.minBackoff, t.maxBackoff)
}

package pubsub

import (
	"math/rand/v2"
	"time"
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

// next returns the backoff after a backoff and a failed attempt.
func (t timing) next(backoff time.Duration) time.Duration { return min(2*backoff, t.maxBackoff) }

// jittered returns a random duration between half of the pause and all of it, so that
// clients of the same failed server do not return at the same moment.
func jittered(pause time.Duration) time.Duration {
	return pause/2 + rand.N(pause/2+1) //nolint:gosec // jitter needs no secret randomness
}

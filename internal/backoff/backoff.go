// Package backoff has the pauses between tries that fail: each try waits for longer than the
// try before it, and for a random time, so that the clients of a server that has failed do not
// all try again at the same moment.
package backoff

import (
	"math/rand/v2"
	"time"
)

// Pause returns a random part, at least half, of a span that doubles with each failed try from
// least to most. No failed try before this one is 0 tries. least is at least two nanoseconds.
func Pause(tries int, least, most time.Duration) time.Duration {
	span := least
	for ; tries > 0 && span < most; tries-- {
		span *= 2
	}
	span = min(span, most)
	return span/2 + rand.N(span/2) //nolint:gosec // jitter needs no secret randomness
}

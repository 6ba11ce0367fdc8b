package pubsub

import (
	"math/rand/v2"
	"time"
)

// pace is the times of what listens.
type pace struct {
	linger   time.Duration // how long it outlives the last one who listens
	silence  time.Duration // after how long without a word the server is asked for one
	answer   time.Duration // how long the server has for it
	shortest time.Duration // the pause after the first connection that failed
	longest  time.Duration // the pause after many
	doubt    time.Duration // for how long a new channel's master may be another one
}

// defaultPace notices within three seconds that a connection is dead, although
// nobody closed it.
func defaultPace() pace {
	return pace{
		linger:   5 * time.Second,
		silence:  2 * time.Second,
		answer:   time.Second,
		shortest: 25 * time.Millisecond,
		longest:  time.Second,
		doubt:    3 * time.Second,
	}
}

// after returns the pause that follows a pause which was in vain.
func (p pace) after(pause time.Duration) time.Duration { return min(2*pause, p.longest) }

// jittered returns something between half of the pause and all of it, so that
// those whom one fault has met do not come back as one.
func jittered(pause time.Duration) time.Duration {
	return pause/2 + rand.N(pause/2+1) //nolint:gosec // jitter needs no secret randomness
}

package pipeline

import "time"

// A server that is overloaded, or a slow way to it, answers each batch later than the lane
// waits. If the lane sent another batch each time, the batches would delay each other further,
// use up the connections of the client, and carry calls whose callers have given up: the
// overload would not end when its cause does. So a lane with maxAbandoned abandoned batches
// begins only one batch in each congestionPause. Once a batch ends in time, the server is fast
// again, and the batches that are still open then are on connections that died.
const (
	maxAbandoned    = 2
	congestionPause = 250 * time.Millisecond
)

// A congestion counts the abandoned batches of a lane that have not ended, without those from
// before the last batch that ended in time.
type congestion struct {
	abandoned int
	inTime    int       // batches that have ended in time
	begunAt   time.Time // the last batch
}

// isCongested reports whether the lane must not begin a batch yet. If so, it sets the timer. The
// caller has locked mu.
func (l *lane) isCongested(now time.Time) bool {
	if l.abandoned < maxAbandoned {
		return false
	}
	end := l.begunAt.Add(congestionPause)
	if !now.Before(end) {
		return false
	}
	l.armTimer(end)
	return true
}

// noteAbandoned counts a batch that the lane abandons.
func (c *congestion) noteAbandoned(b *batch) {
	b.abandoned, b.abandonedAfter = true, c.inTime
	c.abandoned++
}

// noteEnd notes the end of a batch.
func (c *congestion) noteEnd(b *batch) {
	switch {
	case !b.abandoned:
		c.inTime++
		c.abandoned = 0
	case b.abandonedAfter == c.inTime:
		c.abandoned--
	}
}

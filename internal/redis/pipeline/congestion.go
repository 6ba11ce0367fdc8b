package pipeline

import "time"

// A server that is overloaded, or a slow way to it, answers each batch later than the lane
// waits. If the lane sent another batch each time, the batches would delay each other further,
// use up the connections of the client, and carry calls whose callers have given up: the
// overload would not end when its cause does. So a lane with maxAbandoned abandoned batches
// begins another one only once in each congestionPause. Lanes whose calls all wait for at least
// twice that abandon batches no faster anyhow. The pauses stop when a batch is in time: then
// the server is fast, and the abandoned batches are late for another reason, such as
// connections that died.
const (
	maxAbandoned    = 2
	congestionPause = 250 * time.Millisecond
)

// A congestion counts the abandoned batches of a lane that have not ended, without those from
// before the last batch that was in time.
type congestion struct {
	open    int
	inTime  int       // batches that have been in time
	begunAt time.Time // when the last batch began
}

// pausedUntil returns when the lane may begin the next batch, or zero if it may at any time.
func (c *congestion) pausedUntil() time.Time {
	if c.open < maxAbandoned {
		return time.Time{}
	}
	return c.begunAt.Add(congestionPause)
}

// noteAbandoned counts a batch that the lane abandons.
func (c *congestion) noteAbandoned(b *batch) {
	b.abandoned, b.abandonedAfter = true, c.inTime
	c.open++
}

// noteEnd notes the end of a batch. inTime reports whether it has served a call in time.
func (c *congestion) noteEnd(b *batch, inTime bool) {
	switch {
	case inTime:
		c.inTime++
		c.open = 0
	case b.abandoned && b.abandonedAfter == c.inTime:
		c.open--
	}
}

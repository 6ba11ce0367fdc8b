package pipeline

import "time"

// A server that is overloaded, or a slow way to it, answers each batch later than the lane
// waits. If the lane sent another batch each time, the batches would delay each other further,
// use up the connections of the client, and carry calls whose callers have given up: the
// overload would not end when its cause does. So a lane with maxAbandoned abandoned batches
// begins only one batch in each congestionPause, until one of those ends. It does go on: the
// connections of those batches may be dead.
const (
	maxAbandoned    = 2
	congestionPause = 250 * time.Millisecond
)

// isCongested reports whether the lane must not begin a batch yet. If so, it sets the timer. The
// caller has locked mu.
func (l *lane) isCongested(now time.Time) bool {
	if l.abandoned < maxAbandoned {
		return false
	}
	end := l.begunAt.Add(congestionPause)
	if now.Before(end) {
		l.armTimer(end)
		return true
	}
	return false
}

// endAbandoned notes the end of an abandoned batch. The caller has locked mu.
func (l *lane) endAbandoned() {
	l.abandoned--
	l.start()
}

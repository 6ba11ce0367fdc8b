package pubsub

import "time"

// A shardChannel is the sharded channel on which this process receives the hints for one
// key. The channel is in the slot of the key, so the process subscribes at the master of
// the slot. The mutex of shardedSubscriptions guards the fields from listeners on.
type shardChannel struct {
	key  string
	lock string // the name of the lock
	name string

	listeners int
	linger    *time.Timer // removes the channel; nil while there are listeners

	conn         *shardConn    // the connection with the subscription; nil without one
	isConfirmed  bool          // by the server
	confirmedAt  time.Time     // when the server last confirmed the subscription
	ready        chan struct{} // closed when the server has confirmed the subscription
	mayHaveMoved bool          // the slot's master may have changed
	resolveAt    time.Time     // while pending: when to resolve the master
	tries        int           // how often the master was resolved since the last success
	// heapIndex is the channel's index in the heap of pending channels plus 1. It is 0
	// while the channel is not pending.
	heapIndex int
}

// detach takes the channel off its connection and drops the server's confirmation.
func (c *shardChannel) detach() {
	if c.conn != nil {
		delete(c.conn.channels, c.name)
		c.conn = nil
	}
	if c.isConfirmed {
		c.isConfirmed = false
		c.ready = make(chan struct{})
	}
}

// postpone sets resolveAt to the end of the next pause.
func (c *shardChannel) postpone(timing timing) {
	c.resolveAt = time.Now().Add(timing.pauseAfter(c.tries))
	c.tries++
}

package pubsub

import "time"

// A shardChannel is what this process hears of one key on. It lies in the slot of
// the key, so it is asked for at the slot's master. What changes of it is guarded
// by the mutex of its sharded.
type shardChannel struct {
	key  string
	lock string // the name of the lock
	name string

	count    int         // how many listen
	linger   *time.Timer // ends it; nil while somebody listens
	unlisten func()      // where the key is listened for on another channel instead

	conn  *shardConn    // where it is asked for; nil while it is nowhere
	up    bool          // the server has confirmed it
	since time.Time     // when it did
	ready chan struct{} // closed when it is up
	lost  bool          // its master has changed, or may have
	due   time.Time     // when to look for its master, while it is sought
	pause time.Duration // before the next time
	// position is that among the sought ones, from 1; 0 while it is none of them.
	position int
}

// leave takes the channel off its connection. What has been confirmed is no more.
func (c *shardChannel) leave() {
	if c.conn != nil {
		delete(c.conn.channels, c.name)
		c.conn = nil
	}
	if c.up {
		c.up = false
		c.ready = make(chan struct{})
	}
}

// retry puts off when to look for its master.
func (c *shardChannel) retry(pace pace) {
	c.due = time.Now().Add(jittered(c.pause))
	c.pause = pace.after(c.pause)
}

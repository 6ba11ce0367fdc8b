package locktest

import "github.com/alicebob/miniredis/v2"

// newRedis returns an embedded Redis without a listener. Its TTLs follow the clock of the
// test, or the clock of the bubble inside one.
func newRedis() *miniredis.Miniredis {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	return server
}

// Down cuts the connections of the Locker to Redis and refuses new connections, until Up.
// Every call that needs Redis ends with core.ErrUnavailable. A lease that cannot be renewed
// is lost with core.ErrLost.
//
// The keys stay in Redis until their TTL ends, as behind a broken network. Other processes
// are not cut off: Hold, Abandon and Expire work as before.
func (l *Locks) Down() { l.tested.link.cut() }

// Up lets the Locker connect to Redis again.
func (l *Locks) Up() { l.tested.link.mend() }

package locktest

import "github.com/alicebob/miniredis/v2"

// newRedis returns an embedded Redis without a listener, whose keys age by the
// clock of the test: that of the bubble, inside one.
func newRedis() *miniredis.Miniredis {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	return server
}

// Down takes Redis away from the Locker: its connections are cut and new ones
// refused, until Up. Everything that asks Redis ends with core.ErrUnavailable;
// a lease that cannot be renewed is lost with core.ErrLost.
//
// The keys live on, and fall by their TTL, as behind a broken network. Other
// processes are not cut off: Hold, Abandon and Expire work as before.
func (l *Locks) Down() { l.tested.link.cut() }

// Up brings Redis back to the Locker.
func (l *Locks) Up() { l.tested.link.mend() }

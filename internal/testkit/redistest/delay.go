package redistest

import (
	"context"
	"net"
	"time"
)

// Delay delays each command and each reply by at least d, from the time at which it arrives at
// the proxy. Delay(0) ends that for all later arrivals. The order on a connection does not
// change. Commands that arrive together are delayed together: the delay is latency, not a small
// bandwidth. A new connection is not delayed, but its first command is. A batch of CutBatch is
// not delayed.
//
// Delay is safe for concurrent use.
func (p *Proxy) Delay(d time.Duration) {
	p.delay.Store(int64(d))
}

// awaitDelay waits until the delay of a message that arrived at this time is over. It returns
// false if ctx ends before.
func (p *Proxy) awaitDelay(ctx context.Context, arrived time.Time) bool {
	d := time.Until(arrived.Add(time.Duration(p.delay.Load())))
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// timestampedConn records the time of its last read. A buffered reader that reads one message
// at a time reads from the connection only if the message is incomplete. So the time is that at
// which the end of the message arrived.
type timestampedConn struct {
	net.Conn
	at time.Time // of the last read
}

// Read implements net.Conn.
func (c *timestampedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.at = time.Now()
	return n, err
}

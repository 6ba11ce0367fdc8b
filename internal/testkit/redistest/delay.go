package redistest

import (
	"context"
	"net"
	"time"
)

// Delay delays each command and each reply by at least d. With 0, commands and replies that
// arrive at the proxy from then on are not delayed. The order on a connection stays.
// Commands that arrive together are delayed together: the network has latency, not a small
// bandwidth. A new connection is made at once, and its first command is delayed. A batch of
// CutBatch is not delayed.
//
// Delay is safe for concurrent use.
func (p *Proxy) Delay(d time.Duration) {
	p.delay.Store(int64(d))
}

// awaitDelay waits for the delay of what arrived at this time. It returns false if ctx ends
// before.
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

// timestampedConn records the time of its last read. For a reader with a buffer that reads
// one message at a time, that is when the end of the message arrived: the buffer is filled
// only for an incomplete message.
type timestampedConn struct {
	net.Conn
	at time.Time
}

// Read reads, and records the time.
func (s *timestampedConn) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.at = time.Now()
	return n, err
}

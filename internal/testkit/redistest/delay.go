package redistest

import (
	"context"
	"net"
	"time"
)

// Delay makes every command and every reply reach the other side so long after it
// has arrived at the proxy, at the earliest; 0 ends it for those that arrive from
// then on. Their order on a connection stays, and what arrives together is late
// together: the way is long, not narrow. A new connection is made at once, and its
// first words are late. A batch that CutBatch takes is not delayed.
//
// Delay is safe for concurrent use.
func (p *Proxy) Delay(d time.Duration) {
	p.delay.Store(int64(d))
}

// late waits until what arrived at this time may go on. It returns false when ctx
// ends before.
func (p *Proxy) late(ctx context.Context, arrived time.Time) bool {
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

// stamped notes when it has read last. Whoever reads messages through a buffer, and
// no further than the end of one, finds there when the end of that has arrived: the
// buffer is filled only for a message that is not whole.
type stamped struct {
	net.Conn
	at time.Time
}

// Read reads, and notes when it did.
func (s *stamped) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.at = time.Now()
	return n, err
}

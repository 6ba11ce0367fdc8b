package redistest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// A packet is what arrived at once.
type packet struct {
	data []byte
	at   time.Time
}

// maxDelayedPackets is how many packets of a client can be delayed at a time.
const maxDelayedPackets = 1024

// An impairedConn is a connection of a client, behind the impairments of its endpoint. While
// there are none, it writes as the connection does. Otherwise writes are queued, and Close drops
// the queue.
type impairedConn struct {
	*net.TCPConn
	endpoint *endpoint
	received chan packet // from the client; closed at its end
	rest     []byte      // of the last packet that was received
	once     sync.Once
	closed   chan struct{}

	mu        sync.Mutex
	deadline  time.Time // of writes that are not queued
	queue     []packet  // to the client
	isSending bool      // a goroutine sends the queue
}

// impair puts a connection behind the impairments of the endpoint. It needs Close.
func (f *endpoint) impair(conn *net.TCPConn) *impairedConn {
	c := &impairedConn{TCPConn: conn, endpoint: f, received: make(chan packet, maxDelayedPackets), closed: make(chan struct{})}
	f.proxy.running.Go(c.receive)
	return c
}

// receive reads all packets as they arrive, so that each is delayed from its arrival.
func (c *impairedConn) receive() {
	defer close(c.received)
	for {
		data := make([]byte, 4096)
		n, err := c.TCPConn.Read(data)
		if n > 0 {
			select {
			case c.received <- packet{data[:n], time.Now()}:
			case <-c.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Read implements net.Conn.
func (c *impairedConn) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		p, ok := <-c.received
		if !ok || !c.delay(ToServer, p.at) {
			return 0, io.EOF
		}
		if !c.endpoint.impaired(ToServer).drops && c.throttle(ToServer, len(p.data)) {
			c.rest = p.data
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write implements net.Conn.
func (c *impairedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.isSending:
	case c.endpoint.impaired(ToClient) == impairment{}:
		_ = c.TCPConn.SetWriteDeadline(c.deadline)
		return c.TCPConn.Write(b)
	default:
		c.isSending = true
		_ = c.TCPConn.SetWriteDeadline(time.Time{})
		c.endpoint.proxy.running.Go(c.send)
	}
	c.queue = append(c.queue, packet{bytes.Clone(b), time.Now()})
	return len(b), nil
}

// SetWriteDeadline implements net.Conn. A queued write meets its deadline.
func (c *impairedConn) SetWriteDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = at
	return nil
}

// send sends the queue.
func (c *impairedConn) send() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.isSending = false
			c.mu.Unlock()
			return
		}
		p := c.queue[0]
		c.queue = c.queue[1:]
		c.mu.Unlock()
		if !c.delay(ToClient, p.at) || !c.deliver(p.data) {
			_ = c.Close() // isSending stays, so that nothing is sent any more
			return
		}
	}
}

// deliver sends bytes to the client. It reports false if the connection has ended.
func (c *impairedConn) deliver(data []byte) bool {
	for len(data) > 0 {
		how, n := c.endpoint.impaired(ToClient), len(data)
		switch {
		case how.resets:
			_ = c.SetLinger(0)
			return false
		case how.drops:
			return true
		case how.slices:
			n = min(n, 1+rand.IntN(15)) //nolint:gosec // not a secret
		}
		if !c.throttle(ToClient, n) || how.slices && !c.sleep(100*time.Microsecond) {
			return false
		}
		if _, err := c.TCPConn.Write(data[:n]); err != nil {
			return false
		}
		data = data[n:]
	}
	return true
}

// delay waits for the end of the latency of bytes that arrived at this time.
func (c *impairedConn) delay(d Direction, arrived time.Time) bool {
	how := c.endpoint.impaired(d)
	if how.jitter > 0 {
		how.latency += rand.N(2*how.jitter) - how.jitter //nolint:gosec // as above
	}
	return how.latency == 0 || c.sleep(time.Until(arrived.Add(how.latency)))
}

// throttle waits for as long as so many bytes take.
func (c *impairedConn) throttle(d Direction, n int) bool {
	for n > 0 {
		rate := c.endpoint.impaired(d).bytesPerSecond
		if rate == 0 {
			break
		}
		step := min(n, 1+rate/20) // short, for Restore
		if !c.sleep(time.Duration(step) * time.Second / time.Duration(rate)) {
			return false
		}
		n -= step
	}
	return true
}

// sleep reports false if the connection was closed.
func (c *impairedConn) sleep(d time.Duration) bool {
	select {
	case <-c.closed:
		return false
	case <-time.After(d):
		return true
	}
}

// Close implements net.Conn.
func (c *impairedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.TCPConn.Close()
}

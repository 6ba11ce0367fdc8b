package locktest

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// A conn is a connection to the server.
//
// Write does not wait for the server. Otherwise there could be a deadlock: the server replies
// before it has read all commands of a batch and waits until the client reads, while the
// client waits until the server reads.
type conn struct {
	net.Conn
	link  *link
	fault atomic.Pointer[net.OpError] // why the connection has failed; nil if it has not

	mu      sync.Mutex
	written []byte // not sent yet
	sending bool   // a goroutine runs send
}

// newFailedConn returns a connection on which each use fails as on a refused one.
func newFailedConn() *conn {
	end, _ := net.Pipe()
	c := &conn{Conn: end}
	c.fail(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	return c
}

// fail closes the connection. Each later use fails with the fault.
func (c *conn) fail(fault *net.OpError) {
	c.fault.Store(fault)
	_ = c.Conn.Close()
}

// Read reads from the server.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.explain(err)
}

// Write queues b for the server. If sending fails later, Read returns the error.
func (c *conn) Write(b []byte) (int, error) {
	if fault := c.fault.Load(); fault != nil {
		return 0, fault
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written = append(c.written, b...)
	if !c.sending {
		c.sending = true
		go c.send()
	}
	return len(b), nil
}

// send sends the queued bytes until none are left.
func (c *conn) send() {
	for {
		c.mu.Lock()
		written := c.written
		c.written = nil
		c.sending = len(written) > 0
		c.mu.Unlock()
		if len(written) == 0 {
			return
		}
		_, _ = c.Conn.Write(written) // if this fails, Read fails too
	}
}

// explain returns the fault of the connection instead of err, which follows from the fault.
func (c *conn) explain(err error) error {
	if fault := c.fault.Load(); err != nil && fault != nil {
		return fault
	}
	return err
}

// Close closes the connection.
func (c *conn) Close() error {
	if c.link != nil {
		c.link.mu.Lock()
		delete(c.link.conns, c)
		c.link.mu.Unlock()
	}
	return c.Conn.Close()
}

package quorumstore

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// A dialer makes a connection.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// track returns a dialer that uses dial, and records the open connections of a client.
func (m *membership) track(i int, dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := &trackedConn{Conn: conn, membership: m, client: i}
		m.mu.Lock()
		m.members[i].conns[c] = struct{}{}
		m.mu.Unlock()
		if raw, ok := conn.(syscall.Conn); ok {
			return &rawTrackedConn{c, raw}, nil
		}
		return c, nil
	}
}

// A trackedConn is recorded as open in its membership until it is closed.
type trackedConn struct {
	net.Conn
	membership *membership
	client     int
	isReplaced atomic.Bool // closed because the client leads to another server now
}

// Read reads from the connection.
func (c *trackedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.reason(err)
}

// Write writes to the connection.
func (c *trackedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.reason(err)
}

// reason returns why the membership has closed the connection, if it has, instead of err.
func (c *trackedConn) reason(err error) error {
	if err != nil && c.isReplaced.Load() {
		return command.Answered(errReplaced)
	}
	return err
}

// NetConn returns the underlying connection. go-redis uses it.
func (c *trackedConn) NetConn() net.Conn { return c.Conn }

// Close closes the connection.
func (c *trackedConn) Close() error {
	m := c.membership
	m.mu.Lock()
	delete(m.members[c.client].conns, c)
	m.mu.Unlock()
	return c.Conn.Close()
}

// A rawTrackedConn implements syscall.Conn. Before go-redis reuses a connection, it checks
// with syscall.Conn that the server has not closed the connection.
type rawTrackedConn struct {
	*trackedConn
	syscall.Conn
}

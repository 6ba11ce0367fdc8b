package quorumstore

import (
	"context"
	"net"
	"syscall"
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
		w := &trackedConn{Conn: conn, membership: m, client: i}
		m.mu.Lock()
		m.members[i].conns[w] = struct{}{}
		m.mu.Unlock()
		if raw, ok := conn.(syscall.Conn); ok {
			return &rawTrackedConn{w, raw}, nil
		}
		return w, nil
	}
}

// A trackedConn is recorded as open in its membership until it is closed.
type trackedConn struct {
	net.Conn
	membership *membership
	client     int
}

// NetConn returns the underlying connection. go-redis uses it.
func (w *trackedConn) NetConn() net.Conn { return w.Conn }

// Close closes the connection.
func (w *trackedConn) Close() error {
	m := w.membership
	m.mu.Lock()
	delete(m.members[w.client].conns, w)
	m.findDuplicate()
	m.mu.Unlock()
	return w.Conn.Close()
}

// A rawTrackedConn implements syscall.Conn. Before go-redis reuses a connection, it checks
// with syscall.Conn that the server has not closed the connection.
type rawTrackedConn struct {
	*trackedConn
	syscall.Conn
}

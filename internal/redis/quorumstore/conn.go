package quorumstore

import (
	"context"
	"net"
	"syscall"
)

// A dialer makes a connection.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// watch makes connections as dial does, and knows those of a client that are open.
func (m *muster) watch(i int, dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		w := &watched{Conn: conn, muster: m, client: i}
		m.mu.Lock()
		m.places[i].conns[w] = struct{}{}
		m.mu.Unlock()
		if raw, ok := conn.(syscall.Conn); ok {
			return &rawWatched{w, raw}, nil
		}
		return w, nil
	}
}

// watched is a connection that is known to be open until it is closed.
type watched struct {
	net.Conn
	muster *muster
	client int
}

// NetConn returns what the connection stands on, which go-redis looks into.
func (w *watched) NetConn() net.Conn { return w.Conn }

// Close closes the connection.
func (w *watched) Close() error {
	m := w.muster
	m.mu.Lock()
	delete(m.places[w.client].conns, w)
	m.compare()
	m.mu.Unlock()
	return w.Conn.Close()
}

// rawWatched is one that go-redis looks into before it uses it again, to see whether
// the server has closed it.
type rawWatched struct {
	*watched
	syscall.Conn
}

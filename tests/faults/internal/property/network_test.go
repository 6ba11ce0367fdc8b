package property

import (
	"context"
	"net"
	"sync"
	"syscall"

	"github.com/alicebob/miniredis/v2"
)

// A network connects one process to the server. It can be cut, and can lose the next reply.
type network struct {
	server *miniredis.Miniredis

	mu        sync.Mutex
	down      bool
	losesNext bool
	conns     map[*asyncConn]struct{}
}

// dial returns a connection to the server. While the network is down, the connection is
// closed: go-redis would print an error of the dial.
func (n *network) dial(context.Context, string, string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		conn, _ := net.Pipe()
		return conn, conn.Close()
	}
	conn, err := n.server.Dial()
	if err != nil {
		return nil, err
	}
	w := &asyncConn{Conn: conn, network: n}
	n.conns[w] = struct{}{}
	return w, nil
}

// cut closes all connections, and refuses new ones until restore.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	for w := range n.conns {
		_ = w.Conn.Close()
	}
	clear(n.conns)
}

func (n *network) restore() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = false
}

// loseNextReply loses the next reply to the process, and closes its connection.
func (n *network) loseNextReply() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.losesNext = true
}

// takeLoss reports whether to lose this reply.
func (n *network) takeLoss() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.losesNext
	n.losesNext = false
	return was
}

// An asyncConn is a connection whose writes do not wait for the server, since the server
// may wait for its reader.
type asyncConn struct {
	net.Conn
	network *network

	mu      sync.Mutex
	written []byte
	sending bool
}

func (w *asyncConn) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if err == nil && w.network.takeLoss() {
		_ = w.Conn.Close()
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return n, err
}

func (w *asyncConn) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = append(w.written, b...)
	if !w.sending {
		w.sending = true
		go w.send()
	}
	return len(b), nil
}

// send sends what was written. A failed write shows in the next read.
func (w *asyncConn) send() {
	for {
		w.mu.Lock()
		written := w.written
		w.written = nil
		w.sending = len(written) > 0
		w.mu.Unlock()
		if len(written) == 0 {
			return
		}
		_, _ = w.Conn.Write(written)
	}
}

func (w *asyncConn) Close() error {
	w.network.mu.Lock()
	delete(w.network.conns, w)
	w.network.mu.Unlock()
	return w.Conn.Close()
}

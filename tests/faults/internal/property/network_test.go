package property

import (
	"context"
	"net"
	"sync"
	"syscall"

	"github.com/alicebob/miniredis/v2"
)

// A network leads one process to the server, until it is cut, and may lose the
// next reply.
type network struct {
	server *miniredis.Miniredis

	mu        sync.Mutex
	down      bool
	losesNext bool
	wires     map[*asyncConn]struct{}
}

// dial returns a connection to the server, or a dead one while the network is
// down: go-redis would write of an error from here to standard error.
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
	n.wires[w] = struct{}{}
	return w, nil
}

// cut ends all connections, and refuses new ones until it is mended.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	for w := range n.wires {
		_ = w.Conn.Close()
	}
	clear(n.wires)
}

func (n *network) restore() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = false
}

// loseNextReply makes the network lose the next reply that the process hears, and with
// it the connection.
func (n *network) loseNextReply() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.losesNext = true
}

// takeLoss reports whether this is the reply to lose.
func (n *network) takeLoss() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.losesNext
	n.losesNext = false
	return was
}

// A asyncConn is one connection. What is written to it does not wait for the server,
// which may wait for its reader.
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

// send sends what is written. What cannot be sent is seen by who reads.
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
	delete(w.network.wires, w)
	w.network.mu.Unlock()
	return w.Conn.Close()
}

package redistest

import (
	"context"
	"errors"
	"net"
)

// front is where a proxy listens for the clients of one server.
type front struct {
	proxy    *Proxy
	target   string // host:port of the server
	listener net.Listener
	deaf     chan struct{}            // closed when no connections are accepted any more
	markers  map[string]chan struct{} // see settle; under the proxy's lock
}

// newFront listens on a free loopback port. It does not accept yet.
func newFront(p *Proxy, target string) *front {
	p.tb.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		p.tb.Fatalf("start proxy: %v", err)
	}
	return &front{
		proxy: p, target: target, listener: listener,
		deaf: make(chan struct{}), markers: make(map[string]chan struct{}),
	}
}

func (f *front) addr() string { return f.listener.Addr().String() }

// accept makes a link of every new connection until the listener is closed.
func (f *front) accept() {
	defer close(f.deaf)
	for {
		client, err := f.listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				f.proxy.tb.Errorf("proxy: %v", err)
			}
			return
		}
		if !f.admit(client) {
			_ = client.Close()
		}
	}
}

// admit starts a link for the connection, or returns false if none may be.
func (f *front) admit(client net.Conn) bool {
	// Refuse and this are atomic: a link that it does not see is not admitted.
	p := f.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	addr := client.RemoteAddr().String()
	if marker, ok := f.markers[addr]; ok {
		delete(f.markers, addr)
		close(marker)
		return false
	}
	if p.refusing {
		return false
	}
	// The link and its context end with the connection or with the proxy.
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{proxy: p, target: f.target, cancel: cancel, client: client}
	p.links[l] = struct{}{}
	p.running.Go(func() {
		l.run(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
	return true
}

// settle returns when every connection that was dialled before is a link. For
// the client a connection exists as soon as the system has it in the queue of
// the listener. To know that this queue was worked off, settle puts a
// connection of its own, the marker, at its end.
func (f *front) settle() {
	conn, seen := f.mark()
	if conn == nil {
		return // the proxy is closed: nobody is in the queue
	}
	defer func() { _ = conn.Close() }()
	select {
	case <-seen:
	case <-f.deaf:
	}
}

// mark dials the marker, and returns a channel that is closed when it was
// accepted. It returns nil if there is no listener.
func (f *front) mark() (net.Conn, <-chan struct{}) {
	// Under the lock, so that admit does not see the marker before it can tell
	// that it is one. Dialling does not need anybody to accept.
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	dialer := net.Dialer{Timeout: readyTimeout}
	conn, err := dialer.DialContext(context.Background(), "tcp", f.addr())
	if err != nil {
		return nil, nil
	}
	seen := make(chan struct{})
	f.markers[conn.LocalAddr().String()] = seen
	return conn, seen
}

package redistest

import (
	"context"
	"errors"
	"net"
)

// accept makes a link of every new connection until the listener is closed.
func (p *Proxy) accept() {
	defer close(p.deaf)
	for {
		client, err := p.listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				p.tb.Errorf("proxy: %v", err)
			}
			return
		}
		if !p.admit(client) {
			_ = client.Close()
		}
	}
}

// admit starts a link for the connection, or returns false if none may be.
func (p *Proxy) admit(client net.Conn) bool {
	// Refuse and this are atomic: a link that it does not see is not admitted.
	p.mu.Lock()
	defer p.mu.Unlock()
	addr := client.RemoteAddr().String()
	if marker, ok := p.markers[addr]; ok {
		delete(p.markers, addr)
		close(marker)
		return false
	}
	if p.refusing {
		return false
	}
	// The link and its context end with the connection or with the proxy.
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{proxy: p, cancel: cancel, client: client}
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
func (p *Proxy) settle() {
	conn, seen := p.mark()
	if conn == nil {
		return // the proxy is closed: nobody is in the queue
	}
	defer func() { _ = conn.Close() }()
	select {
	case <-seen:
	case <-p.deaf:
	}
}

// mark dials the marker, and returns a channel that is closed when it was
// accepted. It returns nil if there is no listener.
func (p *Proxy) mark() (net.Conn, <-chan struct{}) {
	// Under the lock, so that admit does not see the marker before it can tell
	// that it is one. Dialling does not need anybody to accept.
	p.mu.Lock()
	defer p.mu.Unlock()
	dialer := net.Dialer{Timeout: readyTimeout}
	conn, err := dialer.DialContext(context.Background(), "tcp", p.Addr())
	if err != nil {
		return nil, nil
	}
	seen := make(chan struct{})
	p.markers[conn.LocalAddr().String()] = seen
	return conn, seen
}

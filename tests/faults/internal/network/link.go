package network

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// dialTimeout bounds the wait for a port, and for a connection to a server.
const dialTimeout = 15 * time.Second

// A link connects one process to one server.
type link struct {
	tb      testing.TB
	target  string // the address of the proxy behind it
	addr    string // the address of the listener
	running sync.WaitGroup

	mu          sync.Mutex
	listener    net.Listener // nil after down
	connections map[*connection]struct{}
	settings    [stream.NumDirections]toxicsBySlot
}

// newLink starts a link to the target. The cleanup of tb ends the link.
func newLink(tb testing.TB, target string) *link {
	tb.Helper()
	l := &link{tb: tb, target: target, connections: map[*connection]struct{}{}}
	l.listen(func() string {
		port, err := redistest.FreePort(tb) // reserved, so that up can listen on it again
		if err != nil {
			tb.Fatalf("listen for clients of %s: %v", target, err)
		}
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	})
	tb.Cleanup(func() {
		l.down()
		l.running.Wait()
	})
	return l
}

// listen accepts connections on an address that next returns.
func (l *link) listen(next func() string) {
	l.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	var config net.ListenConfig
	for {
		addr := next()
		listener, err := config.Listen(ctx, "tcp", addr)
		if err == nil {
			l.mu.Lock()
			l.listener, l.addr = listener, addr
			l.mu.Unlock()
			l.running.Go(func() { l.accept(listener) })
			return
		}
		select {
		case <-ctx.Done():
			l.tb.Fatalf("listen for clients of %s: %v", l.target, err)
		case <-time.After(time.Millisecond):
		}
	}
}

func (l *link) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // after down
		}
		l.running.Go(func() {
			if k := l.connect(listener, client); k != nil {
				k.link.run(k.settings)
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.connections, k.link)
			}
		})
	}
}

// An accepted is a new connection with its initial toxics.
type accepted struct {
	link     *connection
	settings [stream.NumDirections]toxicsBySlot
}

// connect connects a client to the server. It returns nil if the server cannot be reached,
// or if the link is down.
func (l *link) connect(listener net.Listener, client net.Conn) *accepted {
	dialer := net.Dialer{Timeout: dialTimeout}
	server, err := dialer.DialContext(context.Background(), "tcp", l.target)
	if err != nil {
		_ = client.Close()
		return nil
	}
	k := &connection{client: client.(*net.TCPConn), server: server.(*net.TCPConn)}
	for direction := range k.pipes {
		k.pipes[direction] = newPipe()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != listener {
		k.close()
		return nil
	}
	if isReset(l.settings[Downstream][breakSlot]) {
		k.setReset()
	}
	l.connections[k] = struct{}{}
	return &accepted{k, l.settings}
}

// set sets the toxic of a slot in all connections; nil removes it.
func (l *link) set(direction Direction, place toxicSlot, toxic toxics.Toxic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settings[direction][place] = toxic
	for k := range l.connections {
		if isReset(toxic) {
			k.setReset()
		}
		k.pipes[direction].put(place, toxic)
	}
}

// restore removes all toxics.
func (l *link) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for direction := range l.settings {
		if l.settings[direction][breakSlot] != nil {
			l.cut() // first: no byte may follow a dropped one
		}
	}
	for direction := range l.settings {
		for place, toxic := range l.settings[direction] {
			if toxic == nil {
				continue
			}
			l.settings[direction][place] = nil
			for k := range l.connections {
				k.pipes[direction].put(toxicSlot(place), nil)
			}
		}
	}
}

// cut closes all connections. The caller holds l.mu.
func (l *link) cut() {
	for k := range l.connections {
		k.close()
	}
}

// down closes all connections, and refuses new ones.
func (l *link) down() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		_ = l.listener.Close()
		l.listener = nil
	}
	l.cut()
}

// up accepts connections again.
func (l *link) up() {
	l.tb.Helper()
	l.mu.Lock()
	addr, listening := l.addr, l.listener != nil
	l.mu.Unlock()
	if !listening {
		l.listen(func() string { return addr })
	}
}

// isReset reports whether a toxic resets connections.
func isReset(toxic toxics.Toxic) bool {
	_, is := toxic.(*toxics.ResetToxic)
	return is
}

// setReset makes close reset the connection.
func (l *connection) setReset() {
	_ = l.client.SetLinger(0)
	_ = l.server.SetLinger(0)
}

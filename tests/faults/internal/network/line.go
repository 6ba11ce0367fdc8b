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

// patience bounds the wait for a port, and for a server to be dialled.
const patience = 15 * time.Second

// A line is the way of one process to one server.
type line struct {
	tb      testing.TB
	target  string // what it leads to
	addr    string // where it listens, when it is up
	running sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while down
	links    map[*link]struct{}
	settings [stream.NumDirections]setting
}

// newLine starts a line to the target, that the cleanup of tb ends.
func newLine(tb testing.TB, target string) *line {
	tb.Helper()
	l := &line{tb: tb, target: target, links: map[*link]struct{}{}}
	l.listen(func() string {
		port, err := redistest.FreePort(tb) // also for the time in which it is down
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

// listen begins to accept connections at an address that next returns.
func (l *line) listen(next func() string) {
	l.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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

func (l *line) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // it is down
		}
		l.running.Go(func() {
			if k := l.connect(listener, client); k != nil {
				k.link.run(k.settings)
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.links, k.link)
			}
		})
	}
}

// admitted is a link, and what is wrong with its bytes from the beginning.
type admitted struct {
	link     *link
	settings [stream.NumDirections]setting
}

// connect makes a link of a new connection, or returns nil if the server cannot be
// reached, or the line has gone down.
func (l *line) connect(listener net.Listener, client net.Conn) *admitted {
	dialer := net.Dialer{Timeout: patience}
	server, err := dialer.DialContext(context.Background(), "tcp", l.target)
	if err != nil {
		_ = client.Close()
		return nil
	}
	k := &link{client: client.(*net.TCPConn), server: server.(*net.TCPConn)}
	for direction := range k.ways {
		k.ways[direction] = newWay()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != listener {
		k.close()
		return nil
	}
	if resets(l.settings[Downstream][broken]) {
		k.abrupt()
	}
	l.links[k] = struct{}{}
	return &admitted{k, l.settings}
}

// set puts a toxic, or nothing, into a slot of all connections.
func (l *line) set(direction Direction, place slot, toxic toxics.Toxic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settings[direction][place] = toxic
	for k := range l.links {
		if resets(toxic) {
			k.abrupt()
		}
		k.ways[direction].put(place, toxic)
	}
}

// calm empties all slots.
func (l *line) calm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for direction := range l.settings {
		if l.settings[direction][broken] != nil {
			l.cut() // first: no byte may follow one that was swallowed
		}
	}
	for direction := range l.settings {
		for place, toxic := range l.settings[direction] {
			if toxic == nil {
				continue
			}
			l.settings[direction][place] = nil
			for k := range l.links {
				k.ways[direction].put(slot(place), nil)
			}
		}
	}
}

// cut closes all connections. The caller holds l.mu.
func (l *line) cut() {
	for k := range l.links {
		k.close()
	}
}

// down closes all connections, and refuses new ones.
func (l *line) down() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		_ = l.listener.Close()
		l.listener = nil
	}
	l.cut()
}

// up ends down.
func (l *line) up() {
	l.tb.Helper()
	l.mu.Lock()
	addr, listening := l.addr, l.listener != nil
	l.mu.Unlock()
	if !listening {
		l.listen(func() string { return addr })
	}
}

// resets tells whether a toxic breaks connections.
func resets(toxic toxics.Toxic) bool {
	_, is := toxic.(*toxics.ResetToxic)
	return is
}

// abrupt makes close break the connection.
func (l *link) abrupt() {
	_ = l.client.SetLinger(0)
	_ = l.server.SetLinger(0)
}

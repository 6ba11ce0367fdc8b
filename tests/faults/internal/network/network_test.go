package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// newNetwork returns a network to a server, the server, and a client that bypasses the
// network.
func newNetwork(t *testing.T) (*Network, *redistest.Server, *redis.Client) {
	t.Helper()
	server := redistest.Start(t)
	return Start(t, server.Addr()), server, server.Client(t)
}

func awaitValue(t *testing.T, client *redis.Client, key, value string) {
	t.Helper()
	suite.Eventually(t, key+" becomes "+value, func() bool { return client.Get(t.Context(), key).Val() == value })
}

func TestPathsLeadToTheirServers(t *testing.T) {
	t.Parallel()
	servers := []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	n := Start(t, servers[0].Addr(), servers[1].Addr())
	for process := range 2 {
		for i, server := range servers {
			w := dial(t, n.Path(process).Routes[server.Addr()])
			w.send("INCR n")
			w.expect(":" + string(rune('1'+process)))
			if got := n.Path(process).Commands.Commands()["INCR"]; got != i+1 {
				t.Errorf("path %d has seen %d commands", process, got)
			}
		}
	}
	if paths := n.Paths(); len(paths) != 2 || paths[0] != n.Path(0) || paths[1] != n.Path(1) {
		t.Errorf("there are %d paths", len(paths))
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	n, server, _ := newNetwork(t)
	path := n.Path(1)
	w := dial(t, path.Routes[server.Addr()])
	const latency = 30 * time.Millisecond
	path.Delay(latency, 0)
	for range 2 {
		begun := time.Now()
		w.send("INCR n")
		w.send("INCR n")
		if _, err := w.reader.Peek(1); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 2*latency {
			t.Errorf("took %v, want %v", took, 2*latency)
		}
		_, _ = w.reader.Discard(8)
		w = dial(t, path.Routes[server.Addr()]) // a new connection is delayed, too
	}
	path.Delay(time.Hour, time.Minute)
	w.send("INCR n")
	path.Restore()
	w.expect(":5") // on the same connection
}

func TestDelayRepliesDelaysNoCommand(t *testing.T) {
	t.Parallel()
	n, server, client := newNetwork(t)
	path := n.Path(1)
	w := dial(t, path.Routes[server.Addr()])
	const latency = 30 * time.Millisecond
	path.DelayReplies(latency, 0)
	begun := time.Now()
	w.send("INCR n")
	w.expect(":1")
	if took := time.Since(begun); took < latency {
		t.Errorf("took %v, want %v", took, latency)
	}
	path.DelayReplies(time.Hour, time.Minute)
	w.send("INCR n")
	suite.Eventually(t, "the command arrives", func() bool { return client.Get(t.Context(), "n").Val() == "2" })
	path.Restore()
	w.expect(":2")
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	n, server, client := newNetwork(t)
	client.Set(t.Context(), "k", strings.Repeat("x", 500), 0)
	client.Set(t.Context(), "n", strings.Repeat("x", 1<<20), 0)
	w := dial(t, n.Path(1).Routes[server.Addr()])
	n.Throttle(1000)
	begun := time.Now()
	w.send("GET k")
	w.expect("$500")
	w.expect(strings.Repeat("x", 500))
	if took := time.Since(begun); took < 500*time.Millisecond {
		t.Errorf("500 bytes took %v", took)
	}
	w.send("GET n")
	w.expect("$1048576")
	n.Restore()
	w.expect(strings.Repeat("x", 1<<20))
}

func TestSlice(t *testing.T) {
	t.Parallel()
	n, server, _ := newNetwork(t)
	n.Path(1).Slice()
	w := dial(t, n.Path(1).Routes[server.Addr()])
	for _, want := range []string{":1", ":2", ":3"} {
		w.send("INCR n")
		w.expect(want)
	}
	n.Restore()
	w.send("INCR n")
	w.expect(":4")

	var packets packets
	n.Path(1).Slice()
	s := n.Path(1).links[0].settings[Upstream]
	newPipe().run(strings.NewReader(strings.Repeat("x", 1000)), &packets, s, func(error) {})
	if packets.bytes != 1000 || packets.longest > 16 {
		t.Errorf("%d bytes, in packets of up to %d", packets.bytes, packets.longest)
	}
}

// packets counts the writes.
type packets struct{ bytes, longest int }

func (p *packets) Write(data []byte) (int, error) {
	p.bytes += len(data)
	p.longest = max(p.longest, len(data))
	return len(data), nil
}

func TestHalfOpen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		direction Direction
		value     string
	}{"commands are swallowed": {Upstream, "1"}, "replies are swallowed": {Downstream, "2"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, server, client := newNetwork(t)
			old := dial(t, n.Path(1).Routes[server.Addr()])
			old.send("INCR n")
			old.expect(":1")
			n.HalfOpen(test.direction)
			old.send("INCR n")
			fresh := dial(t, n.Path(1).Routes[server.Addr()])
			fresh.send("INCR m")
			if test.direction == Downstream {
				awaitValue(t, client, "n", "2")
				awaitValue(t, client, "m", "1")
			}
			n.Path(1).links[0].awaitConnections(t, 2)
			n.Restore()
			for _, w := range []*rawConn{old, fresh} {
				if err := w.readEnd(); err == nil {
					t.Error("a connection has survived")
				}
			}
			if got := client.Get(t.Context(), "n").Val(); got != test.value {
				t.Errorf("n is %s, want %s", got, test.value)
			}
			w := dial(t, n.Path(1).Routes[server.Addr()])
			w.send("PING")
			w.expect("+PONG")
		})
	}
}

// awaitConnections returns when there are that many connections.
func (l *link) awaitConnections(t *testing.T, want int) {
	t.Helper()
	suite.Eventually(t, fmt.Sprint("there are ", want, " connections"), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.connections) == want
	})
}

func TestReset(t *testing.T) {
	t.Parallel()
	n, server, client := newNetwork(t)
	old := dial(t, n.Path(1).Routes[server.Addr()])
	old.send("INCR n")
	old.expect(":1")
	n.Reset()
	fresh := dial(t, n.Path(1).Routes[server.Addr()])
	for i, w := range []*rawConn{old, fresh} {
		w.send("INCR n")
		if err := w.readEnd(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v, want a reset", err)
		}
		awaitValue(t, client, "n", string(rune('2'+i)))
	}
	n.Restore()
	w := dial(t, n.Path(1).Routes[server.Addr()])
	w.send("PING")
	w.expect("+PONG")
}

func TestDownAndUp(t *testing.T) {
	t.Parallel()
	n, server, _ := newNetwork(t)
	addr := n.Path(1).Routes[server.Addr()]
	old := dial(t, addr)
	old.send("PING")
	old.expect("+PONG")
	n.Down()
	n.Down() // changes nothing
	_ = old.readEnd()
	var dialer net.Dialer
	if conn, err := dialer.DialContext(t.Context(), "tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, %v, want a refusal", conn, err)
	}
	n.Up()
	n.Up() // changes nothing
	w := dial(t, addr)
	w.send("PING")
	w.expect("+PONG")
}

// A client that closes its connection while replies are under way leaves nothing behind,
// and blocks no other client.
func TestClosedClientLeavesNothing(t *testing.T) {
	t.Parallel()
	n, server, _ := newNetwork(t)
	path := n.Path(1)
	for range 20 {
		w := dial(t, path.Routes[server.Addr()])
		path.Delay(5*time.Millisecond, 4*time.Millisecond)
		for range 50 {
			w.send("INCR n")
			time.Sleep(50 * time.Microsecond) // in separate packets
		}
		if _, err := w.reader.Peek(1); err != nil {
			t.Fatal(err)
		}
		if err := w.conn.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		_ = w.conn.Close()
		path.Throttle(50_000)
		path.Restore()
	}
}

func TestNetworkWithoutServers(t *testing.T) {
	t.Parallel()
	r := &fatalTB{TB: t}
	func() {
		defer func() { _ = recover() }()
		Start(r)
	}()
	if r.message != "start a network: it leads to no server" {
		t.Errorf("got %q", r.message)
	}
}

type fatalTB struct {
	testing.TB
	message string
}

func (r *fatalTB) Fatal(args ...any) { r.message, _ = args[0].(string); panic(context.Canceled) }

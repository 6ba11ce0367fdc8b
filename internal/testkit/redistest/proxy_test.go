package redistest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// newPair starts a server with a proxy, and a client past the proxy that sees
// what is really in the server.
func newPair(t *testing.T) (*Proxy, *redis.Client) {
	t.Helper()
	server := Start(t)
	return NewProxy(t, server.Addr()), server.Client(t)
}

func TestProxyForwards(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	client := proxy.Client(t)
	large := strings.Repeat("x", 3<<20) // more than the buffers on the way

	if err := client.Set(t.Context(), "k", large, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := client.Get(t.Context(), "k").Val(); got != large {
		t.Errorf("got %d bytes, want %d", len(got), len(large))
	}
	if got := observer.StrLen(t.Context(), "k").Val(); got != int64(len(large)) {
		t.Errorf("server has %d bytes, want %d", got, len(large))
	}
}

func TestProxyForwardsMessages(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	for _, protocol := range []int{2, 3} {
		client := proxy.Client(t, func(o *redis.Options) { o.Protocol = protocol })
		subscription := client.Subscribe(t.Context(), "a", "b")
		for range 2 { // one confirmation per channel
			if _, err := subscription.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, channel := range []string{"a", "b"} {
			if err := observer.Publish(t.Context(), channel, "hello").Err(); err != nil {
				t.Fatal(err)
			}
			message, err := subscription.ReceiveMessage(t.Context())
			if err != nil || message.Channel != channel {
				t.Fatalf("resp %d: got %v, %v", protocol, message, err)
			}
		}
		if err := subscription.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCommandsCounts(t *testing.T) {
	t.Parallel()
	proxy, _ := newPair(t)
	client := proxy.Client(t)
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if proxy.Commands()["HELLO"] != 1 {
		t.Errorf("got %v, want one HELLO", proxy.Commands())
	}

	proxy.ResetCommands()
	pipeline := client.Pipeline()
	pipeline.Set(t.Context(), "k", "v", 0)
	pipeline.Get(t.Context(), "k")
	pipeline.Get(t.Context(), "k")
	if _, err := pipeline.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := proxy.Commands()
	if got["SET"] != 1 || got["GET"] != 2 || got["PING"] != 0 {
		t.Errorf("got %v, want 1 SET and 2 GET", got)
	}
	clear(got) // is the caller's
	if len(proxy.Commands()) == 0 {
		t.Error("the counts were changed from outside")
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	proxy, _ := newPair(t)
	w := dialWire(t, proxy.Addr())
	w.send("PING")
	w.expect("+PONG\r\n")
	proxy.Cut()
	w.expectClosed()

	fresh := dialWire(t, proxy.Addr())
	fresh.send("PING")
	fresh.expect("+PONG\r\n")
}

// Connections that the proxy has not even accepted yet are current, too.
func TestCutReachesFreshConnections(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*Proxy){
		"cut":     (*Proxy).Cut,
		"refuse":  func(p *Proxy) { p.Refuse(true); p.Refuse(false) },
		"dropped": (*Proxy).HealDropped,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, observer := newPair(t)
			for range 50 {
				proxy.Partition()
				wires := []*wire{dialWire(t, proxy.Addr()), dialWire(t, proxy.Addr())}
				for _, w := range wires {
					w.send("INCR n")
				}
				cut(proxy)
				for _, w := range wires {
					w.expectClosed()
				}
			}
			proxy.Heal()
			if n := observer.Exists(t.Context(), "n").Val(); n != 0 {
				t.Fatal("a command got through")
			}
		})
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	first, second := Start(t), Start(t)
	proxy := NewProxy(t, first.Addr(), second.Addr())
	routes := proxy.Routes()
	if len(routes) != 2 || routes[first.Addr()] != proxy.Addr() {
		t.Fatalf("got %v", routes)
	}
	dialWire(t, routes[second.Addr()]).send("SET k v")
	awaitKey(t, second.Client(t), "k", "v")
	clear(routes)
	if len(proxy.Routes()) != 2 {
		t.Error("the map is the proxy's own")
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	proxy, _ := newPair(t)
	client := proxy.Client(t)
	w := dialWire(t, proxy.Addr())
	w.send("PING")
	w.expect("+PONG\r\n")

	proxy.Refuse(true)
	w.expectClosed()
	dialWire(t, proxy.Addr()).expectClosed()
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Fatal("got an answer from a server that is down")
	}
	proxy.Refuse(false)
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestProxyWithoutServer(t *testing.T) {
	t.Parallel()
	server := Start(t)
	proxy := NewProxy(t, server.Addr())
	server.Kill()
	dialWire(t, proxy.Addr()).expectClosed()
}

func TestProxyReportsWrongProtocol(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	proxy := NewProxy(r, Start(t).Addr())
	w := dialWire(t, proxy.Addr())
	if _, err := w.conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	w.expectClosed()
	if got := r.reported(); !strings.Contains(got, "the client does not speak resp") {
		t.Errorf("got %q", got)
	}
}

// All switches at once, for the race detector, and then all is well again.
func TestProxyConcurrently(t *testing.T) {
	t.Parallel()
	proxy, _ := newPair(t)
	client := proxy.Client(t, once, func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond })
	var workers sync.WaitGroup
	for _, fault := range []func(){
		func() { proxy.Partition(); proxy.Heal() },
		func() { proxy.Partition(); proxy.HealDropped() },
		proxy.Cut,
		func() { proxy.Refuse(true); proxy.Refuse(false) },
		func() { proxy.DropReply(Named("INCR"), CloseConn) },
		func() { proxy.DropReply(Named("INCR"), KeepConn) },
		func() { release, _ := proxy.HoldCommand(Named("INCR")); release(); release() },
		func() { _ = proxy.Commands(); proxy.ResetCommands(); _ = proxy.Addr() },
		func() { _ = client.Incr(t.Context(), "n").Err() },
		func() { _ = client.Incr(t.Context(), "n").Err() },
	} {
		workers.Go(func() {
			for range 30 {
				fault()
			}
		})
	}
	workers.Wait()
	suite.Eventually(t, "an answer", func() bool { return client.Ping(t.Context()).Err() == nil })
}

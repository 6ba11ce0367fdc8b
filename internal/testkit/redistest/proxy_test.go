package redistest

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// newPair starts a server with a proxy, and a client past the proxy that sees
// what is really in the server.
func newPair(t *testing.T) (*Proxy, *redis.Client) {
	t.Helper()
	server := Start(t)
	return NewProxy(t, server.Addr()), server.Client(t)
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

func TestDelayMakesCommandsAndRepliesLate(t *testing.T) {
	t.Parallel()
	const delay = 50 * time.Millisecond
	proxy, observer := newPair(t)
	client := dialWire(t, proxy.Addr())
	client.send("PING")
	client.expect("+PONG\r\n")

	proxy.Delay(delay)
	sent := time.Now()
	client.send("SET k v")
	awaitKey(t, observer, "k", "v")
	if took := time.Since(sent); took < delay {
		t.Errorf("a command took %v", took)
	}
	client.expect("+OK\r\n")
	if took := time.Since(sent); took < 2*delay {
		t.Errorf("a command and its reply took %v", took)
	}
}

package redistest

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestPartitionHoldsCommands(t *testing.T) {
	t.Parallel()
	for name, heal := range map[string]func(*Proxy){"delayed": (*Proxy).Heal, "dropped": (*Proxy).HealDropped} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, observer := newPair(t)
			kept, closed := dialWire(t, proxy.Addr()), dialWire(t, proxy.Addr())
			for _, w := range []*wire{kept, closed} {
				w.send("PING")
				w.expect("+PONG\r\n")
			}
			proxy.Partition()
			kept.send("INCR kept")
			closed.send("INCR closed")
			kept.expectSilence()
			closed.hangUp()
			if n := observer.DBSize(t.Context()).Val(); n != 0 {
				t.Fatal("a command got through the partition")
			}
			if n := proxy.Commands()["INCR"]; n != 0 {
				t.Fatal("a command behind the partition was counted")
			}

			heal(proxy)
			if name == "delayed" {
				kept.expect(":1\r\n")
				awaitKey(t, observer, "closed", "1")
				return
			}
			kept.expectClosed()
			if err := proxy.Client(t).Ping(t.Context()).Err(); err != nil {
				t.Fatalf("healed: %v", err)
			}
			if n := observer.DBSize(t.Context()).Val(); n != 0 {
				t.Fatal("a dropped command arrived")
			}
		})
	}
}

func TestPartitionHoldsReplies(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	kept, lost := dialWire(t, proxy.Addr()), dialWire(t, proxy.Addr())
	kept.send("BLPOP first 0")
	lost.send("BLPOP second 0")
	suite.Eventually(t, "blocked clients", func() bool {
		return strings.Contains(observer.Info(t.Context(), "clients").Val(), "blocked_clients:2\r\n")
	})

	for _, list := range []string{"first", "second"} {
		proxy.Partition()
		if err := observer.RPush(t.Context(), list, "v").Err(); err != nil {
			t.Fatal(err)
		}
		suite.Eventually(t, "the pop", func() bool { return observer.Exists(t.Context(), list).Val() == 0 })
		if list == "first" {
			proxy.Heal()
			kept.expect("*2\r\n$5\r\nfirst\r\n$1\r\nv\r\n")
		} else {
			proxy.HealDropped()
			lost.expectClosed()
		}
	}
}

func TestPartitionHoldsTheEnd(t *testing.T) {
	t.Parallel()
	server := Start(t)
	proxy := NewProxy(t, server.Addr())
	w := dialWire(t, proxy.Addr())
	w.send("PING")
	w.expect("+PONG\r\n")

	proxy.Partition()
	server.Restart()
	w.expectSilence() // not even the end gets through
	proxy.Heal()
	w.expectClosed()
}

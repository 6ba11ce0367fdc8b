package redistest

import (
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestDropReplyClosesConnection(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	client := proxy.Client(t, once)
	var seen []string
	dropped := proxy.DropReply(func(command []string) bool {
		if command[0] != "INCR" {
			return false
		}
		seen = slices.Clone(command)
		return true
	}, CloseConn)

	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatalf("a command that does not match: %v", err)
	}
	if err := client.Incr(t.Context(), "n").Err(); err == nil {
		t.Fatal("got the reply")
	}
	suite.AwaitClosed(t, "the drop", dropped)
	incremented(t, observer, "n", 1)
	if !slices.Equal(seen, []string{"INCR", "n"}) {
		t.Errorf("match was given %q", seen)
	}
	// It applies to one command only.
	if err := client.Incr(t.Context(), "n").Err(); err != nil {
		t.Fatal(err)
	}
}

// With its defaults a client makes the server execute a command twice without an error.
func TestDropReplyMakesClientRetry(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	client := proxy.Client(t)
	proxy.DropReply(Named("incr"), CloseConn)
	if n, err := client.Incr(t.Context(), "n").Result(); err != nil || n != 2 {
		t.Fatalf("got %d, %v", n, err)
	}
	incremented(t, observer, "n", 2)
	if n := proxy.Commands()["INCR"]; n != 2 {
		t.Errorf("saw %d commands, want 2", n)
	}
}

func TestDropReplyKeepsTheConnection(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	w := dialWire(t, proxy.Addr())
	dropped := proxy.DropReply(Named("INCR"), KeepConn)
	w.send("PING", "INCR n", "INCR n")
	w.expect("+PONG\r\n")
	suite.AwaitClosed(t, "the drop", dropped)

	// The connection still forwards commands, but no replies.
	w.send("INCR n")
	awaitKey(t, observer, "n", "3")
	other := dialWire(t, proxy.Addr())
	other.send("INCR n")
	other.expect(":4\r\n")
	proxy.Cut()
	w.expectClosed()
}

func TestDropReplyInPipeline(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	w := dialWire(t, proxy.Addr())
	dropped := proxy.DropReply(Named("HSET"), CloseConn)
	for _, b := range encode("SET k v", "HSET h f v", "SET last v") { // in pieces
		if _, err := w.conn.Write([]byte{b}); err != nil {
			break // the connection is closed before the pipeline was sent
		}
	}
	suite.AwaitClosed(t, "the drop", dropped)
	w.expect("+OK\r\n")
	w.expectClosed()
	if got := observer.HGet(t.Context(), "h", "f").Val(); got != "v" {
		t.Errorf("the command was not executed: got %q", got)
	}
}

// A push message between a command and its reply is not the reply.
func TestDropReplyIgnoresPushMessages(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	w := dialWire(t, proxy.Addr())
	w.send("HELLO 3")
	if hello := w.next(); !strings.HasPrefix(hello, "%") {
		t.Fatalf("got %q, want a map", hello)
	}
	w.send("CLIENT TRACKING ON BCAST")
	w.expect("+OK\r\n")
	w.send("BLPOP list 0")
	suite.Eventually(t, "a blocked client", func() bool {
		return strings.Contains(observer.Info(t.Context(), "clients").Val(), "blocked_clients:1\r\n")
	})
	if err := observer.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	w.expect(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n")

	dropped := proxy.DropReply(Named("GET"), CloseConn)
	w.send("GET k") // waits in the server, behind the command that blocks
	suite.Eventually(t, "the command on its way", func() bool { return proxy.Commands()["GET"] == 1 })
	if err := observer.RPush(t.Context(), "list", "v").Err(); err != nil {
		t.Fatal(err)
	}
	got := ""
	for !strings.HasPrefix(got, "*") { // more push messages come before it
		got = w.next()
	}
	if got != "*2\r\n$4\r\nlist\r\n$1\r\nv\r\n" {
		t.Fatalf("got %q", got)
	}
	suite.AwaitClosed(t, "the drop", dropped)
}

func TestDropReplyLeavesSubscribersAlone(t *testing.T) {
	t.Parallel()
	proxy, _ := newPair(t)
	dropped := proxy.DropReply(Named("PING", "UNSUBSCRIBE"), CloseConn)
	w := dialWire(t, proxy.Addr())
	w.send("SUBSCRIBE a b", "PING", "UNSUBSCRIBE")
	for range 5 {
		if reply := w.next(); !strings.HasPrefix(reply, "*") {
			t.Fatalf("got %q", reply)
		}
	}
	// The rule still applies to another connection.
	other := dialWire(t, proxy.Addr())
	other.send("PING")
	other.expectClosed()
	suite.AwaitClosed(t, "the drop", dropped)
}

// Each rule applies to one command, in the order of the rules. DropReply also applies to a held
// command.
func TestRulesAreTakenInOrder(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	first, firstSeen := proxy.HoldCommand(Named("INCR"))
	second, secondSeen := proxy.HoldCommand(Named("INCR"))
	dropped := proxy.DropReply(Named("INCR"), CloseConn)

	a, b := dialWire(t, proxy.Addr()), dialWire(t, proxy.Addr())
	a.send("INCR n")
	suite.AwaitClosed(t, "the first hold", firstSeen)
	b.send("INCR n")
	suite.AwaitClosed(t, "the second hold", secondSeen)
	second()
	suite.AwaitClosed(t, "the drop", dropped)
	b.expectClosed()
	incremented(t, observer, "n", 1)
	first()
	a.expect(":2\r\n")
}

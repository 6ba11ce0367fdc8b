package redistest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

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

func TestHoldCommandOutlivesClient(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	w := dialWire(t, proxy.Addr())
	release, seen := proxy.HoldCommand(func(command []string) bool {
		return command[0] == "SET" && command[1] == "lock"
	})

	w.send("SET lock old")
	suite.AwaitClosed(t, "the hold", seen)
	w.expectSilence()
	w.hangUp()
	// Other connections are not affected, even with the same command.
	if err := proxy.Client(t).Set(t.Context(), "lock", "new", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := observer.Get(t.Context(), "lock").Val(); got != "new" {
		t.Fatalf("got %q: the command was not held", got)
	}
	release()
	release() // does nothing
	awaitKey(t, observer, "lock", "old")
}

func TestHoldCommandIsLostWithItsConnection(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	release, seen := proxy.HoldCommand(Named("SET"))
	w := dialWire(t, proxy.Addr())
	w.send("SET k v")
	suite.AwaitClosed(t, "the hold", seen)
	proxy.Cut()
	release()
	w.expectClosed()
	if err := observer.Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Fatalf("got %v: the command arrived", err)
	}
}

func TestOtherConnectionsOvertakeAHeldReply(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	release, seen := proxy.HoldReply(Named("INCR"))
	late, swift := dialWire(t, proxy.Addr()), dialWire(t, proxy.Addr())
	late.send("PING", "INCR n", "PING")
	late.expect("+PONG\r\n")
	suite.AwaitClosed(t, "the held reply", seen)
	awaitKey(t, observer, "n", "1")
	late.expectSilence()
	swift.send("INCR n", "INCR n") // it applies to one command
	swift.expect(":2\r\n")
	swift.expect(":3\r\n")
	release()
	release() // does nothing
	late.expect(":1\r\n")
	late.expect("+PONG\r\n")
}

package redistest

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

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

func TestHoldCommandAcrossPartition(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	release, seen := proxy.HoldCommand(Named("INCR"))
	w := dialWire(t, proxy.Addr())
	w.send("INCR n")
	suite.AwaitClosed(t, "the hold", seen)
	proxy.Partition()
	release()
	if n := observer.Exists(t.Context(), "n").Val(); n != 0 {
		t.Fatal("a command got through the partition")
	}
	proxy.Heal()
	w.expect(":1\r\n")
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

func TestAHeldReplyIsLostWithItsConnection(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	release, seen := proxy.HoldReply(Named("INCR"))
	w := dialWire(t, proxy.Addr())
	w.send("INCR n")
	suite.AwaitClosed(t, "the held reply", seen)
	proxy.Cut()
	w.expectClosed()
	release()
	incremented(t, observer, "n", 1)
}

func TestReleaseBeforeMatch(t *testing.T) {
	t.Parallel()
	proxy, _ := newPair(t)
	release, seen := proxy.HoldCommand(Named("PING"))
	release()
	if err := proxy.Client(t).Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	suite.AwaitClosed(t, "the match", seen)
}

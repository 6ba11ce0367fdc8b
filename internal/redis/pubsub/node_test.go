package pubsub

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// shardBehindProxy returns a store on one server behind a proxy. The client of the store
// treats the server as a cluster. The client direct connects to the server without the proxy.
func shardBehindProxy(t *testing.T) (s *testStore, proxy *redistest.Proxy, direct *redis.Client) {
	t.Helper()
	server := redistest.Reuse(t)
	server.Grant(storetest.ClusterRights()...)
	proxy = redistest.NewProxy(t, server.Addr())
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ReadTimeout: 200 * time.Millisecond,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: proxy.Addr()}}}}, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return newStore(t, rdb), proxy, server.Client(t)
}

// shardChannels returns the number of sharded channels with subscribers.
func shardChannels(t *testing.T, direct *redis.Client) int {
	t.Helper()
	return len(direct.PubSubShardChannels(t.Context(), "*").Val())
}

func TestShardedChannelIsReadyAfterTheServersConfirmation(t *testing.T) {
	t.Parallel()
	s, proxy, direct := shardBehindProxy(t)
	hints := hintsOf(s)
	for _, key := range []string{"first", "second"} {
		release, seen := proxy.HoldCommand(redistest.Named("SSUBSCRIBE"))
		ready, stop := s.Listen(key)
		defer stop()
		suite.Receive(t, "the command is sent", seen)
		if suite.IsClosed(ready) {
			t.Error("ready before the server has received SSUBSCRIBE")
		}
		release()
		suite.AwaitClosed(t, "ready", ready)
		if got := nextHint(t, hints); got != (hint{key, ""}) {
			t.Errorf("hint %v", got)
		}
	}
	if n := shardChannels(t, direct); n != 2 {
		t.Errorf("%d channels with subscribers", n)
	}
}

// The reply to the request of a removed channel does not confirm the next channel of the key.
func TestReplyForARemovedChannelDoesNotConfirmTheNextOne(t *testing.T) {
	t.Parallel()
	s, proxy, direct := shardBehindProxy(t)
	s.sharded.timing.linger = time.Microsecond
	hints := hintsOf(s)
	release, seen := proxy.HoldCommand(redistest.Named("SSUBSCRIBE"))
	_, stop := s.Listen("k")
	suite.Receive(t, "the command is sent", seen)
	stop()
	suite.Eventually(t, "the channel is removed", func() bool {
		_, known := s.sharded.keyOf("p:k")
		return !known
	})
	releaseNext, seenNext := proxy.HoldCommand(redistest.Named("SUNSUBSCRIBE"))
	ready, stop := s.Listen("k")
	defer stop()
	release()
	suite.Receive(t, "the command is sent", seenNext)
	suite.Eventually(t, "the first request is executed", func() bool { return shardChannels(t, direct) == 1 })
	if suite.IsClosed(ready) {
		t.Error("ready after the reply for the removed channel")
	}
	releaseNext()
	suite.AwaitClosed(t, "ready", ready)
	if got := nextHint(t, hints); got != (hint{"k", ""}) || len(hints) > 0 {
		t.Errorf("hint %v and %d more", got, len(hints))
	}
	if n := shardChannels(t, direct); n != 1 {
		t.Errorf("%d channels with subscribers", n)
	}
}

func TestReplyTimeoutOfAMaster(t *testing.T) {
	t.Parallel()
	s, proxy, _ := shardBehindProxy(t)
	s.sharded.timing = quickTimeout()
	hints := hintsOf(s)
	ready, stop := s.Listen("k")
	defer stop()
	suite.AwaitClosed(t, "ready", ready)
	nextHint(t, hints)
	for range 2 {
		proxy.Partition()
		suite.Eventually(t, "the connection times out", func() bool {
			again, stop := s.Listen("k")
			stop()
			return !suite.IsClosed(again)
		})
		proxy.HealDropped()
		if got := nextHint(t, hints); got != (hint{"k", ""}) {
			t.Errorf("hint %v", got)
		}
	}
	if n := proxy.Commands()["SSUBSCRIBE"]; n > 20 {
		t.Errorf("%d SSUBSCRIBE commands, want at most 20", n)
	}
}

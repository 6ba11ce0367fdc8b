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

// shardBehindProxy returns a store whose client takes one server, which it reaches
// through a proxy, for a cluster.
func shardBehindProxy(t *testing.T) (s *syncStore, proxy *redistest.Proxy, direct *redis.Client) {
	t.Helper()
	server := redistest.Start(t)
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

// subscribed returns how many sharded channels somebody listens on.
func subscribed(t *testing.T, direct *redis.Client) int {
	t.Helper()
	return len(direct.PubSubShardChannels(t.Context(), "*").Val())
}

func TestAShardedChannelIsReadyWhenTheServerHasConfirmedIt(t *testing.T) {
	s, proxy, direct := shardBehindProxy(t)
	hints := hintsOf(s)
	for _, key := range []string{"first", "second"} {
		let, seen := proxy.HoldCommand(redistest.Named("SSUBSCRIBE"))
		ready, stop := s.Listen(key)
		defer stop()
		<-seen
		if isReady(ready) {
			t.Error("ready before the server has heard of it")
		}
		let()
		<-ready
		if got := <-hints; got != (hint{key, ""}) {
			t.Errorf("hint %v", got)
		}
	}
	if n := subscribed(t, direct); n != 2 {
		t.Errorf("%d channels", n)
	}
}

// What was asked for a channel that is gone says nothing of the next one.
func TestAnAnswerForAChannelThatWasLeftIsNotTheNextOnes(t *testing.T) {
	s, proxy, direct := shardBehindProxy(t)
	s.sharded.pace.linger = time.Microsecond
	hints := hintsOf(s)
	let, seen := proxy.HoldCommand(redistest.Named("SSUBSCRIBE"))
	_, stop := s.Listen("k")
	<-seen
	stop()
	suite.Eventually(t, "the channel is left", func() bool {
		_, known := s.sharded.waited("p:k")
		return !known
	})
	letNext, seenNext := proxy.HoldCommand(redistest.Named("SUNSUBSCRIBE"))
	ready, stop := s.Listen("k")
	defer stop()
	let()
	<-seenNext
	suite.Eventually(t, "the first one is subscribed", func() bool { return subscribed(t, direct) == 1 })
	if isReady(ready) {
		t.Error("ready by another's answer")
	}
	letNext()
	<-ready
	if got := <-hints; got != (hint{"k", ""}) || len(hints) > 0 {
		t.Errorf("hint %v and %d more", got, len(hints))
	}
	if n := subscribed(t, direct); n != 1 {
		t.Errorf("%d channels", n)
	}
}

func TestASilentMasterIsNoticed(t *testing.T) {
	s, proxy, _ := shardBehindProxy(t)
	s.sharded.pace = impatient()
	hints := hintsOf(s)
	ready, stop := s.Listen("k")
	defer stop()
	<-ready
	<-hints
	for range 2 {
		proxy.Partition()
		suite.Eventually(t, "the silence is noticed", func() bool {
			again, stop := s.Listen("k")
			stop()
			return !isReady(again)
		})
		proxy.HealDropped()
		if got := <-hints; got != (hint{"k", ""}) {
			t.Errorf("hint %v", got)
		}
	}
	if n := proxy.Commands()["SSUBSCRIBE"]; n > 20 {
		t.Errorf("asked for %d times", n)
	}
}

func TestCloseWhileTheMasterIsSilent(t *testing.T) {
	s, proxy, _ := shardBehindProxy(t)
	s.sharded.pace = quick
	ready, stop := s.Listen("k")
	defer stop()
	<-ready
	proxy.Partition()
	late, stopLate := s.Listen("late")
	defer stopLate()
	if err := s.Close(t.Context()); err != nil || isReady(late) {
		t.Errorf("%v, ready %v", err, isReady(late))
	}
}

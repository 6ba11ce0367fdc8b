package pubsub

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A hint has the arguments of a call of the hint function.
type hint struct{ key, token string }

// hintsOf returns a channel with the hints of a store from now on.
func hintsOf(s *testStore) <-chan hint {
	hints := make(chan hint, 1000)
	s.OnHint(func(key, token string) { hints <- hint{key, token} })
	return hints
}

// nextHint waits for the next hint.
func nextHint(t *testing.T, hints <-chan hint) hint {
	t.Helper()
	return suite.Receive(t, "a hint", hints)
}

// subscribers returns the number of subscribers of the channel of the process Me.
func subscribers(t *testing.T, rdb redis.UniversalClient) int64 {
	t.Helper()
	return rdb.PubSubNumSub(t.Context(), storetest.ProcessChannel).Val()[storetest.ProcessChannel]
}

// publish publishes a message on the channel of the process Me, which must have one subscriber.
func publish(t *testing.T, rdb redis.UniversalClient, payload string) {
	t.Helper()
	if n, err := rdb.Publish(t.Context(), storetest.ProcessChannel, payload).Result(); err != nil || n != 1 {
		t.Fatalf("publish: %d subscribers, %v, want 1", n, err)
	}
}

func TestReadyAfterTheServersConfirmation(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t)
	hints := hintsOf(s)
	release, seen := proxy.HoldCommand(redistest.Named("SUBSCRIBE"))
	ready, stop := s.Listen("k")
	defer stop()
	suite.Receive(t, "the command is sent", seen)
	if suite.IsClosed(ready) || subscribers(t, direct) != 0 {
		t.Error("ready before the server has received SUBSCRIBE")
	}
	release()
	suite.AwaitClosed(t, "ready", ready)
	if got := nextHint(t, hints); got != (hint{"k", ""}) {
		t.Errorf("hint %v", got)
	}
	if n := subscribers(t, direct); n != 1 {
		t.Errorf("%d subscribers, want 1", n)
	}
	if again, stop := s.Listen("other"); !suite.IsClosed(again) {
		t.Error("a second key is not ready, but the subscription is confirmed")
	} else {
		stop()
	}
}

func TestMessageBecomesAHint(t *testing.T) {
	t.Parallel()
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newStore(t, rdb)
		hints := hintsOf(s)
		for _, key := range []string{"k", "a}b"} { // the lock name of the second key contains a digest
			ready, stop := s.Listen(key)
			defer stop()
			suite.AwaitClosed(t, "ready", ready)
		}
		nextHint(t, hints) // the gap hint of the first confirmation
		for _, key := range []string{"k", "a}b", "{x}:y", "without a listener", "with\r\nbreaks"} {
			publish(t, rdb, storetest.Me1+" "+s.names.Lock(key))
			if got := nextHint(t, hints); got != (hint{key, storetest.Me1}) {
				t.Errorf("hint %v, want the key %q", got, key)
			}
		}
	}, redistest.OnCluster) // TestShardedChannels covers a cluster
}

func TestForgedMessagesDoNothing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s := newStore(t, rdb)
	hints := hintsOf(s)
	ready, stop := s.Listen("k")
	defer stop()
	suite.AwaitClosed(t, "ready", ready)
	nextHint(t, hints)
	invalid := []string{
		storetest.Me1 + " x", storetest.Me1 + " p:", storetest.Me1 + " {p:k}:q", storetest.Me1 + "  p:k", storetest.Me1 + " {p:{a}}:f",
		storetest.Me1 + " p:{a}:q", storetest.Me1 + " p:a}b", storetest.Me1 + " " + s.names.Lock("a}b"),
	}
	for _, payload := range append(invalid, storetest.ForgedHints...) {
		publish(t, rdb, payload)
	}
	publish(t, rdb, storetest.Me1+" p:k")
	if got := nextHint(t, hints); got != (hint{"k", storetest.Me1}) {
		t.Errorf("hint %v", got)
	}
	if n := subscribers(t, rdb); n != 1 {
		t.Errorf("%d subscribers, want 1", n)
	}
}

func TestAHundredKeysShareOneConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s, direct := newStore(t, proxy.Client(t)), server.Client(t)
	hints := hintsOf(s)
	want := make(map[hint]bool)
	for i := range 100 {
		key := strconv.Itoa(i + 1) // and the number of its token
		ready, stop := s.Listen(key)
		defer stop()
		suite.AwaitClosed(t, "ready", ready)
		want[hint{key, storetest.Me + ":" + key}] = true
	}
	if n, conns := subscribers(t, direct), proxy.Commands()["SUBSCRIBE"]; n != 1 || conns != 1 {
		t.Errorf("%d subscribers and %d SUBSCRIBE commands, want 1 and 1", n, conns)
	}
	nextHint(t, hints)
	for i := range 100 {
		publish(t, direct, fmt.Sprintf("%s:%d p:%d", storetest.Me, i+1, i+1))
	}
	for len(want) > 0 {
		if got := nextHint(t, hints); got.token != "" {
			delete(want, got)
		}
	}
}

func TestKeyGetsHintsUntilItsLastListenerStops(t *testing.T) {
	t.Parallel()
	s, proxy, _ := behindProxy(t)
	hints := hintsOf(s)
	ready, stop := s.Listen("k")
	_, stopOther := s.Listen("k")
	_, stopAnother := s.Listen("another")
	defer stopAnother()
	suite.AwaitClosed(t, "ready", ready)
	stop()
	stop() // does nothing
	expect := func(want ...string) {
		t.Helper()
		for len(hints) > 0 {
			nextHint(t, hints)
		}
		proxy.Cut()
		got := make(map[string]bool)
		for range want {
			got[nextHint(t, hints).key] = true
		}
		for _, key := range want {
			if !got[key] {
				t.Errorf("hints for %v, want %v", got, want)
			}
		}
	}
	expect("k", "another")
	stopOther()
	expect("another")
}

func TestSubscriptionOutlivesItsLastListener(t *testing.T) {
	t.Parallel()
	s, proxy, _ := behindProxy(t)
	s.shared.timing.linger = time.Hour
	for range 3 {
		ready, stop := s.Listen("k")
		suite.AwaitClosed(t, "ready", ready)
		stop()
	}
	if n := proxy.Commands()["SUBSCRIBE"]; n != 1 {
		t.Errorf("%d SUBSCRIBE commands, want 1", n)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestHintFunctionMayListenAndStop(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Reuse(t).Client(t))
	done := make(chan struct{})
	s.OnHint(func(string, string) {
		_, stop := s.Listen("other")
		stop()
		close(done)
	})
	_, stop := s.Listen("k")
	defer stop()
	suite.Receive(t, "the hint function returns", done)
}

func TestCloseEndsTheSubscription(t *testing.T) {
	t.Parallel()
	for name, isLingering := range map[string]bool{"with a listener": false, "during the linger time": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Reuse(t).Client(t)
			s := newStore(t, rdb)
			ready, stop := s.Listen("k")
			suite.AwaitClosed(t, "ready", ready)
			if isLingering {
				stop()
			}
			canceled, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Close(canceled); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			for range 2 {
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			suite.Eventually(t, "no channel is left", func() bool { return len(rdb.PubSubChannels(t.Context(), "*").Val()) == 0 })
			stop()
			late, stopLate := s.Listen("k")
			stopLate()
			stopLate()
			if suite.IsClosed(late) || s.shared.session != nil || subscribers(t, rdb) != 0 {
				t.Error("ready or subscribed after Close")
			}
		})
	}
}

func TestHandOffOnAClusterOfOneNode(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--cluster-enabled", "yes")
	if err := server.Client(t).ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
	t.Cleanup(func() { _ = rdb.Close() })
	s := newStore(t, rdb)
	hints := hintsOf(s)
	ready, stop := s.Listen("k")
	defer stop()
	suite.AwaitClosed(t, "ready", ready)
	nextHint(t, hints)
	suite.Eventually(t, "the cluster accepts commands", func() bool {
		_, err := s.Enqueue(t.Context(), storetest.Request(storetest.Bob1))
		return err == nil
	})
	if got, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me1)); err != nil || got.Granted || got.ForeignHolder {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.Release(t.Context(), storetest.Request(storetest.Bob1)); err != nil || got.Status != store.Handed {
		t.Errorf("%+v, %v", got, err)
	}
	if got := nextHint(t, hints); got != (hint{"k", storetest.Me1}) {
		t.Errorf("hint %v", got)
	}
}

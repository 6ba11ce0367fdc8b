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

// A hint is what the hint function is told.
type hint struct{ key, token string }

// hintsOf returns the hints of a store.
func hintsOf(s *syncStore) <-chan hint {
	hints := make(chan hint, 1000)
	s.OnHint(func(key, token string) { hints <- hint{key, token} })
	return hints
}

// isReady reports whether the channel is closed.
func isReady(ready <-chan struct{}) bool {
	select {
	case <-ready:
		return true
	default:
		return false
	}
}

// subscribers returns how many connections listen for the process me.
func subscribers(t *testing.T, rdb redis.UniversalClient) int64 {
	t.Helper()
	return rdb.PubSubNumSub(t.Context(), storetest.ProcessChannel).Val()[storetest.ProcessChannel]
}

func say(t *testing.T, rdb redis.UniversalClient, payload string) {
	t.Helper()
	if n, err := rdb.Publish(t.Context(), storetest.ProcessChannel, payload).Result(); err != nil || n != 1 {
		t.Fatalf("%d have heard it, %v", n, err)
	}
}

func TestReadyIsWhatTheServerHasConfirmed(t *testing.T) {
	s, proxy, direct := behindProxy(t)
	hints := hintsOf(s)
	let, seen := proxy.HoldCommand(redistest.Named("SUBSCRIBE"))
	ready, stop := s.Listen("k")
	defer stop()
	<-seen
	if isReady(ready) || subscribers(t, direct) != 0 {
		t.Error("ready before the server has heard of it")
	}
	let()
	<-ready
	if got := <-hints; got != (hint{"k", ""}) {
		t.Errorf("hint %v", got)
	}
	if n := subscribers(t, direct); n != 1 {
		t.Errorf("%d listen", n)
	}
	if again, stop := s.Listen("other"); !isReady(again) {
		t.Error("not ready, though the subscription is")
	} else {
		stop()
	}
}

func TestAMessageIsAHint(t *testing.T) {
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newStore(t, rdb)
		hints := hintsOf(s)
		for _, key := range []string{"k", "a}b"} { // the second one is written as a digest
			ready, stop := s.Listen(key)
			defer stop()
			<-ready
		}
		<-hints // of the first confirmation
		for _, key := range []string{"k", "a}b", "{x}:y", "nobody waits for it", "with\r\nbreaks"} {
			say(t, rdb, storetest.Me1+" "+s.names.Lock(key))
			if got := <-hints; got != (hint{key, storetest.Me1}) {
				t.Errorf("hint %v, want the key %q", got, key)
			}
		}
	}, redistest.OnCluster) // whose channels have a test of their own
}

func TestForgedMessagesDoNothing(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	s := newStore(t, rdb)
	hints := hintsOf(s)
	ready, stop := s.Listen("k")
	defer stop()
	<-ready
	<-hints
	noNames := []string{
		storetest.Me1 + " x", storetest.Me1 + " p:", storetest.Me1 + " {p:k}:q", storetest.Me1 + "  p:k", storetest.Me1 + " {p:{a}}:f",
		storetest.Me1 + " p:{a}:q", storetest.Me1 + " p:a}b", storetest.Me1 + " " + s.names.Lock("a}b"),
	}
	for _, payload := range append(noNames, storetest.ForgedHints...) {
		say(t, rdb, payload)
	}
	say(t, rdb, storetest.Me1+" p:k")
	if got := <-hints; got != (hint{"k", storetest.Me1}) {
		t.Errorf("hint %v", got)
	}
	if n := subscribers(t, rdb); n != 1 {
		t.Errorf("%d listen", n)
	}
}

//faults:row 28
func TestAHundredKeysShareOneConnection(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s, direct := newStore(t, proxy.Client(t)), server.Client(t)
	hints := hintsOf(s)
	want := make(map[hint]bool)
	for i := range 100 {
		key := strconv.Itoa(i)
		ready, stop := s.Listen(key)
		defer stop()
		<-ready
		want[hint{key, storetest.Me + ":" + key}] = true
	}
	if n, conns := subscribers(t, direct), proxy.Commands()["SUBSCRIBE"]; n != 1 || conns != 1 {
		t.Errorf("%d connections listen, %d were made", n, conns)
	}
	<-hints
	for i := range 100 {
		say(t, direct, fmt.Sprintf("%s:%d p:%d", storetest.Me, i, i))
	}
	for len(want) > 0 {
		if got := <-hints; got.token != "" {
			delete(want, got)
		}
	}
}

func TestAKeyIsListenedForUntilTheLastHasStopped(t *testing.T) {
	s, proxy, _ := behindProxy(t)
	hints := hintsOf(s)
	ready, stop := s.Listen("k")
	_, stopOther := s.Listen("k")
	_, stopAnother := s.Listen("another")
	defer stopAnother()
	<-ready
	stop()
	stop() // counts once
	expect := func(want ...string) {
		t.Helper()
		for len(hints) > 0 {
			<-hints
		}
		proxy.Cut()
		heard := make(map[string]bool)
		for range want {
			heard[(<-hints).key] = true
		}
		for _, key := range want {
			if !heard[key] {
				t.Errorf("hints of %v, want %v", heard, want)
			}
		}
	}
	expect("k", "another")
	stopOther()
	expect("another")
}

func TestTheSubscriptionOutlivesTheLastWaitByItsLinger(t *testing.T) {
	s, proxy, direct := behindProxy(t)
	s.listeners.pace.linger = time.Hour
	for range 3 {
		ready, stop := s.Listen("k")
		<-ready
		stop()
	}
	if n := proxy.Commands()["SUBSCRIBE"]; n != 1 {
		t.Errorf("set up %d times", n)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	brief := newStore(t, direct)
	brief.listeners.pace.linger = time.Millisecond
	for range 3 {
		ready, stop := brief.Listen("k")
		<-ready
		stop()
		suite.Eventually(t, "no channel is left", func() bool { return len(direct.PubSubChannels(t.Context(), "*").Val()) == 0 })
	}
}

func TestWhoHearsAHintMayListenAndStop(t *testing.T) {
	s := newStore(t, redistest.Start(t).Client(t))
	done := make(chan struct{})
	s.OnHint(func(string, string) {
		_, stop := s.Listen("other")
		stop()
		close(done)
	})
	_, stop := s.Listen("k")
	defer stop()
	<-done
}

func TestCloseEndsTheSubscription(t *testing.T) {
	for name, lingering := range map[string]bool{"listening": false, "lingering": true} {
		t.Run(name, func(t *testing.T) {
			rdb := redistest.Start(t).Client(t)
			s := newStore(t, rdb)
			ready, stop := s.Listen("k")
			<-ready
			if lingering {
				stop()
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Close(ended); err != nil && !errors.Is(err, context.Canceled) {
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
			if isReady(late) || subscribers(t, rdb) != 0 {
				t.Error("ready after close")
			}
		})
	}
}

func TestListenOnACluster(t *testing.T) {
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
	<-ready
	<-hints
	suite.Eventually(t, "the cluster serves", func() bool {
		_, err := s.Enqueue(t.Context(), storetest.Request(storetest.Bob1))
		return err == nil
	})
	if got, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me1)); err != nil || got.Granted || got.ForeignHolder {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.Release(t.Context(), storetest.Request(storetest.Bob1)); err != nil || got.Status != store.Handed {
		t.Errorf("%+v, %v", got, err)
	}
	if got := <-hints; got != (hint{"k", storetest.Me1}) {
		t.Errorf("hint %v", got)
	}
}

package redisstore

import (
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// newStore returns a store of the process me. What it left behind ends with
// the test.
func newStore(t *testing.T, rdb redis.UniversalClient) *syncStore {
	t.Helper()
	return newStoreOf(t, rdb, storetest.Me)
}

func newStoreOf(t *testing.T, rdb redis.UniversalClient, process string) *syncStore {
	t.Helper()
	s, err := New(rdb, "p:", process, command.Replicas{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &syncStore{Store: s, process: process}
}

// syncStore is a store whose transitions return their answers.
type syncStore struct {
	*Store
	process string
	alone   bool // release as if nobody were known to wait
}

func (s *syncStore) Take(_ context.Context, r storetest.AnyRequest) (store.Answer, error) {
	return storetest.Await(func(done func(store.Answer, error)) { s.Store.Take(r.Take(), done) })
}

func (s *syncStore) Enqueue(_ context.Context, r storetest.AnyRequest) (store.Answer, error) {
	return storetest.Await(func(done func(store.Answer, error)) { s.Store.Enqueue(r.Enqueue(), done) })
}

func (s *syncStore) Renew(_ context.Context, r storetest.AnyRequest) (store.Renewal, error) {
	return storetest.Await(func(done func(store.Renewal, error)) { s.Store.Renew(r.Renew(), done) })
}

func (s *syncStore) Release(_ context.Context, r storetest.AnyRequest) (store.ReleaseResult, error) {
	r.NoWaiters = r.NoWaiters || s.alone
	return storetest.Await(func(done func(store.ReleaseResult, error)) { s.Store.Release(r.Release(), done) })
}

func (s *syncStore) Resolve(_ context.Context, r storetest.AnyRequest) (running bool, err error) {
	return storetest.Await(func(done func(bool, error)) { s.Store.Resolve(r.Resolve(), done) })
}

// An audit hears what is said to some processes, as they would.
type audit struct {
	sharded bool
	conns   map[string]*redis.PubSub // by their channels
}

func listenAs(t *testing.T, rdb redis.UniversalClient, processes ...string) audit {
	t.Helper()
	return listenInMode(t, rdb, "P", processes...)
}

// listenInMode listens where the scripts say it to the processes, in their mode.
func listenInMode(t *testing.T, rdb redis.UniversalClient, mode string, processes ...string) audit {
	t.Helper()
	a := audit{sharded: mode == "S", conns: make(map[string]*redis.PubSub)}
	for _, process := range processes {
		channel, listen := "p:"+process, rdb.Subscribe
		if a.sharded {
			channel, listen = "{p:k}:"+process, rdb.SSubscribe
		}
		conn := listen(t.Context(), channel)
		t.Cleanup(func() { _ = conn.Close() }) // where the test fails, or the next one would wait until it has gone
		if _, err := conn.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.conns[channel] = conn
	}
	return a
}

// heard ends the audit and returns what was said.
func (a audit) heard(t *testing.T, rdb redis.UniversalClient) []string {
	t.Helper()
	say, left := rdb.Publish, redis.Cmdable.PubSubChannels
	if a.sharded {
		say, left = rdb.SPublish, redis.Cmdable.PubSubShardChannels
	}
	var said []string
	for channel, conn := range a.conns {
		say(t.Context(), channel, "end")
		for {
			m, err := conn.ReceiveMessage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if m.Payload == "end" {
				break
			}
			said = append(said, m.Payload)
		}
		_ = conn.Close()
	}
	// A process that has gone is counted until its server has noticed.
	for stay := true; stay; {
		stay = false
		err := redistest.EachMaster(t.Context(), rdb, func(master redis.Cmdable) error {
			channels, err := left(master, t.Context(), "*p:*").Result()
			stay = stay || len(channels) > 0
			return err
		})
		if err != nil {
			t.Fatalf("the listeners stay: %v", err)
		}
	}
	return said
}

// setMode makes the scripts of the store publish in a mode.
func (s *syncStore) setMode(mode string) { s.subscriber = modeSubscriber{s.subscriber, mode} }

// A modeSubscriber reports a mode of the test's.
type modeSubscriber struct {
	subscriber
	mode any
}

func (m modeSubscriber) Mode() any { return m.mode }

// laneWidth returns how many commands the linked product sends together at most.
func laneWidth() int {
	if width, err := strconv.Atoi(os.Getenv("REQLOCK_LANE_WIDTH")); err == nil {
		return width
	}
	return 128
}

// behindProxy returns a store behind a proxy, the proxy, and a client that connects to
// the server without the proxy.
func behindProxy(t *testing.T, configure ...func(*redis.Options)) (*syncStore, *redistest.Proxy, *redis.Client) {
	t.Helper()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := proxy.Client(t, append([]func(*redis.Options){storetest.ShortReads}, configure...)...)
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return newStore(t, rdb), proxy, server.Client(t)
}

// awaitReady fails the test unless the channel is closed in time.
func awaitReady(t *testing.T, ready <-chan struct{}) {
	t.Helper()
	suite.Eventually(t, "it is ready", func() bool {
		select {
		case <-ready:
			return true
		default:
			return false
		}
	})
}

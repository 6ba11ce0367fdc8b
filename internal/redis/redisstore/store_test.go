package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// timesOut is a hook that lets each command run into a deadline of the client while it is on.
type timesOut struct {
	storetest.OpenCircuit
	on *atomic.Bool
}

func (h timesOut) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.on.Load() {
			cmd.SetErr(context.DeadlineExceeded)
			return context.DeadlineExceeded
		}
		return next(ctx, cmd)
	}
}

func (timesOut) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The reason is that of a command, and no error of a caller's context.
func TestUnservedServerIsReported(t *testing.T) {
	t.Parallel()
	rdb, hook := redistest.Reuse(t).Client(t), timesOut{on: &atomic.Bool{}}
	rdb.AddHook(hook)
	s, tokens := newStore(t, rdb), &storetest.Tokens{}
	s.Watch()
	if _, err := s.Take(t.Context(), tokens.Request("before")); err != nil {
		t.Fatal(err)
	}
	if since, why := s.Unserved("k"); !since.IsZero() || why != nil {
		t.Errorf("a server that serves: since %v, %v", since, why)
	}
	hook.on.Store(true)
	begun := time.Now()
	_, err := s.Take(t.Context(), tokens.Request("k"))
	since, why := s.Unserved("k")
	if err == nil || since.Before(begun) || !errors.Is(why, command.ErrNoReply) || errors.Is(why, context.DeadlineExceeded) {
		t.Errorf("%v: unserved for %v, %v", err, time.Since(since), why)
	}
	hook.on.Store(false)
	suite.Eventually(t, "a probe is served", func() bool { since, _ := s.Unserved("k"); return since.IsZero() })
}

func TestCloseEndsSubscription(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	s, admin := newStore(t, server.Client(t)), server.Client(t)
	ready, stop := s.Listen("k")
	defer stop()
	suite.AwaitClosed(t, "subscribed", ready)
	channels := func() int { return len(admin.PubSubChannels(t.Context(), "*").Val()) }
	if channels() == 0 {
		t.Fatal("there is no subscription")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, "no subscription is left", func() bool { return channels() == 0 })
}

func TestCloseEndsProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) { return nil, errBroken }
		rdb, hook := redis.NewClient(&redis.Options{Addr: "10.0.0.1:6379", Dialer: dial}), breaks{sent: &atomic.Int64{}}
		rdb.AddHook(hook)
		s := newStore(t, rdb)
		s.Watch()
		if _, err := s.Take(t.Context(), storetest.Request(storetest.Me1)); err == nil {
			t.Fatal("a command was served")
		}
		sent := hook.sent.Load()
		if time.Sleep(time.Minute); hook.sent.Load() == sent {
			t.Fatal("there are no probes")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		sent = hook.sent.Load()
		if time.Sleep(time.Minute); hook.sent.Load() != sent {
			t.Error("there are probes after Close")
		}
		if err := rdb.Close(); err != nil {
			t.Error(err)
		}
	})
}

// breaks is a hook that counts the commands and sends none.
type breaks struct {
	storetest.OpenCircuit
	sent *atomic.Int64
}

func (h breaks) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		h.sent.Add(1)
		cmd.SetErr(errBroken)
		return errBroken
	}
}

var errBroken = errors.New("the connection broke")

// A store passes the hints for its process to the function of OnHint.
func TestHintArrivesAtItsStore(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s, hints := newStore(t, rdb), make(chan [2]string, 100)
	s.OnHint(func(key, token string) { hints <- [2]string{key, token} })
	ready, stop := s.Listen("k")
	defer stop()
	suite.Receive(t, "the subscription is confirmed", ready)
	if err := rdb.Publish(t.Context(), "p:"+storetest.Me, storetest.Me1+" p:k").Err(); err != nil {
		t.Fatal(err)
	}
	for got := ([2]string{}); got != [2]string{"k", storetest.Me1}; { // the first hint reports the gap before the subscription
		got = suite.Receive(t, "the hint", hints)
	}
}

func TestProcessesHaveDifferentIDs(t *testing.T) {
	t.Parallel()
	one, other := NewProcess(), NewProcess()
	if len(one) != len(storetest.Me) || one == other {
		t.Errorf("%q and %q", one, other)
	}
}

// The two kinds of wrappers around a client: a wrapper that hides what it wraps, and a wrapper
// that embeds the client of a cluster.
type (
	opaqueWrapper  struct{ redis.UniversalClient }
	clusterWrapper struct{ *redis.ClusterClient }
)

// A wrapped client of a cluster subscribes on any node. A waiter that listens there must not
// be skipped.
func TestWaiterBehindWrappedClusterClientIsHandedTheKey(t *testing.T) {
	t.Parallel()
	connect := func(t *testing.T) *redis.ClusterClient {
		t.Helper()
		return redistest.Shared(t, redistest.OnCluster).Client(t).(*redis.ClusterClient)
	}
	t.Run("both wrapped opaquely", func(t *testing.T) {
		t.Parallel()
		mustHandOver(t, newStore(t, opaqueWrapper{connect(t)}), newStoreOf(t, opaqueWrapper{connect(t)}, storetest.Bob))
	})
	t.Run("the waiter's client embedded", func(t *testing.T) {
		t.Parallel()
		mustHandOver(t, newStore(t, clusterWrapper{connect(t)}), newStoreOf(t, connect(t), storetest.Bob))
	})
	t.Run("the holder's client embedded", func(t *testing.T) {
		t.Parallel()
		mustHandOver(t, newStore(t, connect(t)), newStoreOf(t, clusterWrapper{connect(t)}, storetest.Bob))
	})
}

// mustHandOver fails the test unless some keys are handed over from one process to another.
func mustHandOver(t *testing.T, waiter, holder *syncStore) {
	t.Helper()
	prefix := redistest.OwnPrefix()
	for i := range 6 {
		held, waits := storetest.Request(storetest.Bob1), storetest.Request(storetest.Me1)
		held.Key = fmt.Sprint(prefix, i)
		waits.Key = held.Key
		ready, stop := waiter.Listen(held.Key)
		defer stop()
		suite.AwaitClosed(t, "the subscription is confirmed", ready)
		if got, err := holder.Enqueue(t.Context(), held); err != nil || !got.Granted {
			t.Fatalf("%+v, %v", got, err)
		}
		if got, err := waiter.Enqueue(t.Context(), waits); err != nil || got.Granted {
			t.Fatalf("%+v, %v", got, err)
		}
		if got, err := holder.Release(t.Context(), held); err != nil || got.Status != store.Handed {
			t.Errorf("%s is not handed over: %+v, %v", held.Key, got, err)
		}
	}
}

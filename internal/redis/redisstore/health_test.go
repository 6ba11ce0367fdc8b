package redisstore

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
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

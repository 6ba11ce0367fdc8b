package redisstore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
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
	rdb, hook := redistest.Start(t).Client(t), timesOut{on: &atomic.Bool{}}
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

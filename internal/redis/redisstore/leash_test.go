package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// childContext derives a context for each command, as hooks that bound or trace
// commands do.
type childContext struct{ breaker }

func (childContext) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return next(ctx, cmd)
	}
}

func (childContext) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The context of a leader does not change while derived contexts look at it.
func TestAHookMayDeriveAContext(t *testing.T) {
	rdb := redistest.Start(t).Client(t, deadlines)
	rdb.AddHook(childContext{})
	s := newStore(t, rdb)
	warm(t, s)
	for range 50 {
		_, answered := lead(s, inline("k"))
		<-answered
	}
}

// It has an error once it has ended, as derived contexts rely on.
func TestAHookMayDeriveAContextThatEnds(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := proxy.Client(t, deadlines)
	rdb.AddHook(childContext{})
	s := newStore(t, rdb)
	for range 10 {
		warm(t, s)
		dropped := proxy.DropReply(redistest.Named("SET"), redistest.KeepConn)
		_, answered := lead(s, inline("k"))
		<-dropped
		if got := <-answered; got.err != nil || !got.answer.Granted {
			t.Errorf("%+v", got)
		}
		if _, err := s.Release(t.Context(), inline("k")); err != nil {
			t.Error(err)
		}
	}
}

// A client whose connections have no deadlines cannot let a leader go.
func TestNobodyLeadsWithoutDeadlines(t *testing.T) {
	for name, configure := range map[string]func(*redis.Options){
		"of reads":  func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = -2, time.Second },
		"of writes": func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = time.Second, -2 },
		"at all":    func(o *redis.Options) { o.ContextTimeoutEnabled = false },
	} {
		t.Run(name, func(t *testing.T) {
			rdb := redistest.Start(t).Client(t, deadlines, configure)
			if canLead(rdb) {
				t.Error("it may lead")
			}
		})
	}
}

// raced is a hook that does not wait for longer than its context.
type raced struct{ breaker }

func (raced) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		done := make(chan error, 1)
		go func() { done <- next(context.WithoutCancel(ctx), cmd) }()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (raced) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// What a hook gave up may have been sent all the same.
func TestAHookMayGiveUpASentRelease(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := proxy.Client(t, shortReads, deadlines)
	s := newStore(t, rdb)
	rdb.AddHook(raced{})
	direct := server.Client(t)
	for range 5 {
		r := inline("warm")
		_, _ = s.Release(t.Context(), r)
	}
	state{value: me1, ttl: ttl}.put(t, direct)
	proxy.DropReply(redistest.Named("EVALSHA"), redistest.KeepConn)
	r := inline("k")
	got, err := s.Release(t.Context(), r)
	if err != nil || got.End != store.Unsure {
		t.Errorf("%+v, %v: want unsure, our own first send freed it", got, err)
	}
}

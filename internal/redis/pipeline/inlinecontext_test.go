package pipeline

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// derivedContextHook derives a context for each command, as hooks that bound or trace
// commands do.
type derivedContextHook struct{ storetest.OpenCircuit }

func (derivedContextHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return next(ctx, cmd)
	}
}

func (derivedContextHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The context of an inline batch does not change while derived contexts read it.
func TestHookMayDeriveContext(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t, storetest.Deadlines)
	rdb.AddHook(derivedContextHook{})
	s := newStore(t, rdb)
	makeFast(t, s)
	for range 50 {
		_, answered := takeInline(s, inline("k"))
		<-answered
	}
}

// The context has an error once it has ended: derived contexts rely on that.
func TestHookMayDeriveContextThatEnds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := proxy.Client(t, storetest.Deadlines)
	rdb.AddHook(derivedContextHook{})
	s := newStore(t, rdb)
	for range 10 {
		makeFast(t, s)
		dropped := proxy.DropReply(redistest.Named("SET"), redistest.KeepConn)
		_, answered := takeInline(s, inline("k"))
		<-dropped
		if got := <-answered; got.err != nil || !got.answer.Granted {
			t.Errorf("%+v", got)
		}
		if _, err := s.Release(t.Context(), inline("k")); err != nil {
			t.Error(err)
		}
	}
}

// ctxHook is a hook that does not wait for longer than its context.
type ctxHook struct{ storetest.OpenCircuit }

func (ctxHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
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

func (ctxHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A command that a hook stops waiting for may still be sent.
func TestHookMayAbandonSentRelease(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := proxy.Client(t, storetest.ShortReads, storetest.Deadlines)
	s := newStore(t, rdb)
	rdb.AddHook(ctxHook{})
	direct := server.Client(t)
	for range 5 {
		r := inline("warm")
		_, _ = s.Release(t.Context(), r)
	}
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Put(t, direct)
	proxy.DropReply(redistest.Named("EVALSHA"), redistest.KeepConn)
	r := inline("k")
	got, err := s.Release(t.Context(), r)
	if err != nil || got.Status != store.Unsure {
		t.Errorf("%+v, %v: want unsure, our own first send freed it", got, err)
	}
}

package pipeline

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A derivedContextHook derives a context for each command, as hooks for timeouts and tracing
// do.
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
	rdb := redistest.Reuse(t).Client(t, storetest.Deadlines)
	rdb.AddHook(derivedContextHook{})
	s := newStore(t, rdb)
	makeFast(t, s)
	for range 50 {
		_, answered := takeInline(s, inline("k"))
		if got := suite.Receive(t, "the take is answered", answered); got.err != nil || !got.answer.Granted {
			t.Errorf("%+v", got)
		}
	}
}

// Derived contexts require that an ended context has an error.
func TestHookMayDeriveContextThatEnds(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := proxy.Client(t, storetest.Deadlines)
	rdb.AddHook(derivedContextHook{})
	s := newStore(t, rdb)
	for range 10 {
		makeFast(t, s)
		dropped := proxy.DropReply(redistest.Named("SET"), redistest.KeepConn)
		_, answered := takeInline(s, inline("k"))
		suite.AwaitClosed(t, "the reply is lost", dropped)
		if got := suite.Receive(t, "the take is answered", answered); got.err != nil || !got.answer.Granted {
			t.Errorf("%+v", got)
		}
		if _, err := s.Release(t.Context(), inline("k")); err != nil {
			t.Error(err)
		}
	}
}

// An abandonHook stops waiting for a script when its context ends.
type abandonHook struct{ storetest.OpenCircuit }

func (abandonHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		script, ok := cmd.(*command.Generic)
		if !ok {
			return next(ctx, cmd)
		}
		// The caller reads its command once the hook has returned, so another one is sent.
		sent := command.New(0, cmd.Args())
		done := make(chan error, 1)
		go func() { done <- next(context.WithoutCancel(ctx), sent) }()
		select {
		case err := <-done:
			script.SetVal(sent.Val())
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (abandonHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A command may have been sent although a hook has stopped waiting for it.
func TestHookMayAbandonSentRelease(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := proxy.Client(t, storetest.ShortReads, storetest.Deadlines)
	s := newStore(t, rdb)
	rdb.AddHook(abandonHook{})
	direct := server.Client(t)
	for range 5 { // until the lane is fast
		_, _ = s.Release(t.Context(), inline("warm"))
	}
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Put(t, direct)
	proxy.DropReply(redistest.Named("EVALSHA"), redistest.KeepConn)
	got, err := s.Release(t.Context(), inline("k"))
	if err != nil || got.Status != store.Unsure {
		t.Errorf("%+v, %v, want unsure: the first send has freed the key", got, err)
	}
}

package redisstore

import (
	"context"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// refusesSetWith is a hook that answers SET with an option as a server does that does not
// know the option: before Redis 7, SET has no GET beside NX.
type refusesSetWith struct {
	option  string
	refused int
}

func (*refusesSetWith) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *refusesSetWith) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		one := h.ProcessPipelineHook(func(ctx context.Context, cmds []redis.Cmder) error { return next(ctx, cmds[0]) })
		if err := one(ctx, []redis.Cmder{cmd}); err != nil {
			return err
		}
		return cmd.Err()
	}
}

func (h *refusesSetWith) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		known := make([]redis.Cmder, 0, len(cmds))
		for _, cmd := range cmds {
			if cmd.Name() == "set" && slices.Contains(cmd.Args(), any(h.option)) {
				h.refused++
				cmd.SetErr(storetest.ServerError("ERR syntax error"))
				continue
			}
			known = append(known, cmd)
		}
		if len(known) == 0 {
			return nil
		}
		return next(ctx, known)
	}
}

func TestTakeUsesScriptAfterServerRefusedSetNXGet(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	hook := &refusesSetWith{option: "get"}
	rdb.AddHook(hook)
	s := newStore(t, rdb)
	for i, want := range []bool{true, true, false} {
		token := storetest.Me1
		if i == 2 {
			token = storetest.Me2
		}
		if got, err := s.Take(t.Context(), storetest.Request(token)); err != nil || got.Granted != want {
			t.Errorf("take %d: %+v, %v", i, got, err)
		}
	}
	if hook.refused != 1 {
		t.Errorf("SET NX GET was sent %d times", hook.refused)
	}
}

// A proxy before the server may not even know SET NX. The store must not try SET again and
// again.
func TestTakeUsesScriptAfterServerRefusedSetNX(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	hook := &refusesSetWith{option: "nx"}
	rdb.AddHook(hook)
	s := newStore(t, rdb)
	if got := take(t, s); !got.granted || hook.refused != 1 {
		t.Errorf("%+v after %d refusals", got, hook.refused)
	}
}

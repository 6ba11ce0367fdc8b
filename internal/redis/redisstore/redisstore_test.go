package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// withoutSetNXGet answers as a server before Redis 7 does, which does not know the
// word in a SET.
type withoutSetNXGet struct {
	word    string
	refused int
}

func (*withoutSetNXGet) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *withoutSetNXGet) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		one := h.ProcessPipelineHook(func(ctx context.Context, cmds []redis.Cmder) error { return next(ctx, cmds[0]) })
		if err := one(ctx, []redis.Cmder{cmd}); err != nil {
			return err
		}
		return cmd.Err()
	}
}

func (h *withoutSetNXGet) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		known := make([]redis.Cmder, 0, len(cmds))
		for _, cmd := range cmds {
			if cmd.Name() == "set" && slices.Contains(cmd.Args(), any(h.word)) {
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

func TestAnOldServerIsAskedByScriptFromThenOn(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	hook := &withoutSetNXGet{word: "get"}
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
		t.Errorf("the native command was tried %d times", hook.refused)
	}
}

//faults:row 22
func TestScriptsComeBackAfterAFlush(t *testing.T) {
	t.Parallel()
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newStore(t, rdb)
		for range 2 {
			if got := enqueue(t, s); !got.granted {
				t.Errorf("enqueue: %+v", got)
			}
			if got := renew(t, s); !got.granted {
				t.Errorf("renew: %+v", got)
			}
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if got := release(t, s); got.end != store.Freed {
				t.Errorf("release: %+v", got)
			}
		}
	})
}

func TestErrorsCarryNoTokenAndNoKey(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	s := newStore(t, rdb)
	if err := rdb.RPush(t.Context(), storetest.LockName, "x").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Take(t.Context(), storetest.Request("secret:1"))
	var fault *store.Fault
	if !errors.As(err, &fault) || fault.Temporary || fault.Unknown || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
		t.Errorf("take of a list: %#v", err)
	}
	if _, err := s.Enqueue(t.Context(), storetest.Request("secret:1")); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), storetest.LockName) {
		t.Errorf("enqueue for a list: %v", err)
	}
}

package core_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// oldServer is a hook that replies to SET with NX and GET as a server before Redis 7 does.
type oldServer struct{ storetest.OpenCircuit }

func (oldServer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "set" && slices.Contains(args, any("nx")) && slices.Contains(args, any("get")) {
			cmd.SetErr(storetest.ServerError("ERR syntax error"))
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

func (o oldServer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		one := o.ProcessHook(func(ctx context.Context, cmd redis.Cmder) error { return next(ctx, []redis.Cmder{cmd}) })
		for _, cmd := range cmds {
			_ = one(ctx, cmd)
		}
		return nil
	}
}

// The first lock is refused with the version that is needed, not the first one that waits.
func TestServerBeforeRedis7IsNamed(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	rdb.AddHook(oldServer{})
	locks := newLocker(t, rdb)
	_, err := locks.Lock(t.Context(), "k")
	for name, err := range map[string]error{"Lock": err, "Check": locks.Check(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "older than redis 7.0") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := rdb.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

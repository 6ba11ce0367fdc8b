package lock

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// pipelinedKeys is how many keys are in one pipeline.
const pipelinedKeys = 32

// A rawPipelined sets and deletes many keys in one pipeline. It excludes nobody: it shows what
// go-redis and the server do at most.
type rawPipelined struct{ client redis.UniversalClient }

func openRawPipelined(c Config) (Locker, error) {
	return rawPipelined{wire.NewClient(c.Addrs, c.Commands, func(o *redis.UniversalOptions) { o.PoolSize = 1 })}, nil
}

// Lock implements Locker. It does all the work.
func (r rawPipelined) Lock(ctx context.Context, key string) (Held, error) {
	pipeline := r.client.Pipeline()
	for i := range pipelinedKeys {
		each := key + ":" + strconv.Itoa(i)
		pipeline.SetNX(ctx, each, key, TTL)
		pipeline.Del(ctx, each)
	}
	_, err := pipeline.Exec(ctx)
	return r, err
}

// Release implements Held.
func (rawPipelined) Release(context.Context) error { return nil }

// Close implements Locker.
func (r rawPipelined) Close() error { return r.client.Close() }

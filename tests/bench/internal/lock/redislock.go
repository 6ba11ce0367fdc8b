package lock

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// redislockPause is the pause between two attempts.
const redislockPause = time.Millisecond

// A bsmLock is github.com/bsm/redislock.
type bsmLock struct {
	client  redis.UniversalClient
	locks   *redislock.Client
	options *redislock.Options
}

func openRedislock(c Config) (Locker, error) {
	client := wire.NewClient(c.Addrs, c.Commands)
	return &bsmLock{client, redislock.New(client), &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(redislockPause),
	}}, nil
}

// Lock implements Locker.
func (b *bsmLock) Lock(ctx context.Context, key string) (Held, error) {
	held, err := b.locks.Obtain(ctx, key, TTL, b.options)
	if err != nil {
		return nil, err
	}
	return held, nil
}

// Close implements Locker.
func (b *bsmLock) Close() error { return b.client.Close() }

package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/bench/internal/wire"
)

// rawPause is the pause between two attempts.
const rawPause = time.Millisecond

// compareAndDelete frees a lock if it still is the caller's. It is the recipe
// of https://redis.io/docs/latest/develop/use/patterns/distributed-locks.
var compareAndDelete = redis.NewScript(
	`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)

// A rawLock is the least that a lock in Redis needs, written on go-redis: what
// the round trips cost alone.
type rawLock struct {
	client  redis.UniversalClient
	process string // no other process has it
	counter atomic.Uint64
}

func openRaw(c Config) (Locker, error) {
	return &rawLock{client: wire.NewClient(c.Addrs, c.Commands), process: rand.Text() + ":"}, nil
}

// Lock is that of Locker.
func (r *rawLock) Lock(ctx context.Context, key string) (Held, error) {
	held := &rawHeld{client: r.client, key: key, token: r.process + strconv.FormatUint(r.counter.Add(1), 10)}
	for {
		taken, err := r.client.SetNX(ctx, key, held.token, TTL).Result()
		if err != nil {
			return nil, err
		}
		if taken {
			return held, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(rawPause):
		}
	}
}

// Close is that of Locker.
func (r *rawLock) Close() error { return r.client.Close() }

// rawHeld is a lock that is held.
type rawHeld struct {
	client     redis.UniversalClient
	key, token string
}

var errNotHeld = errors.New("raw: the lock was not held any more")

// Release is that of Held.
func (h *rawHeld) Release(ctx context.Context) error {
	deleted, err := compareAndDelete.Run(ctx, h.client, []string{h.key}, h.token).Int()
	if err == nil && deleted == 0 {
		return errNotHeld
	}
	return err
}

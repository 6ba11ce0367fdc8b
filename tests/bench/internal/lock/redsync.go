package lock

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// A redsyncLock is github.com/go-redsync/redsync, with a pool for each client.
type redsyncLock struct {
	clients []redis.UniversalClient
	locks   *redsync.Redsync
	options []redsync.Option
}

func openRedsync(c Config) (Locker, error) {
	return redsyncOn(wire.NewClient(c.Addrs, c.Commands)), nil
}

func openRedsyncQuorum(c Config) (Locker, error) {
	return redsyncOn(wire.NewClients(c.Addrs, c.Commands)...), nil
}

func redsyncOn(clients ...redis.UniversalClient) *redsyncLock {
	pools := make([]redsyncredis.Pool, len(clients))
	for i, client := range clients {
		pools[i] = goredis.NewPool(client)
	}
	return &redsyncLock{clients, redsync.New(pools...), []redsync.Option{
		redsync.WithExpiry(TTL),
		redsync.WithTries(math.MaxInt), // until ctx ends
		redsync.WithRetryDelayFunc(redsyncPause),
	}}
}

// redsyncPause is the pause between two attempts. The default, 50 to 250 ms, suits locks
// that are held for long.
func redsyncPause(int) time.Duration {
	return time.Millisecond + rand.N(4*time.Millisecond) //nolint:gosec // it spreads retries and guards nothing
}

// Lock implements Locker.
func (r *redsyncLock) Lock(ctx context.Context, key string) (Held, error) {
	mutex := r.locks.NewMutex(key, r.options...)
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	return redsyncHeld{mutex}, nil
}

// Close implements Locker.
func (r *redsyncLock) Close() error { return wire.Close(r.clients) }

// A redsyncHeld is a held mutex.
type redsyncHeld struct{ mutex *redsync.Mutex }

var errNotUnlocked = errors.New("redsync: not unlocked")

// Release implements Held.
func (h redsyncHeld) Release(ctx context.Context) error {
	unlocked, err := h.mutex.UnlockContext(ctx)
	if err == nil && !unlocked {
		return errNotUnlocked
	}
	return err
}

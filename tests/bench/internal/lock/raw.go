package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// rawPause is the pause between two attempts.
const rawPause = time.Millisecond

// compareAndDelete releases a lock if the caller still holds it. It is the recipe of
// https://redis.io/docs/latest/develop/use/patterns/distributed-locks.
var compareAndDelete = redis.NewScript(
	`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)

// A rawLock is the least that a lock in Redis needs, on go-redis: the cost of the round
// trips alone.
type rawLock struct {
	client  redis.UniversalClient
	process string // unique among processes
	counter atomic.Uint64
	// set takes the lock with the token if it is free.
	set func(ctx context.Context, client redis.UniversalClient, key, token string) (taken bool, err error)
}

func openRaw(c Config) (Locker, error)        { return rawOn(c, set), nil }
func openRawReplica(c Config) (Locker, error) { return rawOn(c, setAndWait), nil }

func rawOn(c Config, set func(context.Context, redis.UniversalClient, string, string) (bool, error)) *rawLock {
	return &rawLock{client: wire.NewClient(c.Addrs, c.Commands), process: rand.Text() + ":", set: set}
}

func set(ctx context.Context, client redis.UniversalClient, key, token string) (bool, error) {
	return client.SetNX(ctx, key, token, TTL).Result()
}

var errNotAcknowledged = errors.New("raw: no replica has acknowledged the lock")

// setAndWait also requires that a replica has the lock. The pipeline keeps WAIT on the
// connection of the SET.
func setAndWait(ctx context.Context, client redis.UniversalClient, key, token string) (bool, error) {
	both := client.Pipeline()
	taken := both.SetNX(ctx, key, token, TTL)
	replicas := both.Do(ctx, "WAIT", 1, replicaTime.Milliseconds())
	if _, err := both.Exec(ctx); err != nil {
		return false, err
	}
	if !taken.Val() {
		return false, nil
	}
	if n, err := replicas.Int(); err != nil || n < 1 {
		return false, errors.Join(errNotAcknowledged, err) // the key expires with its TTL
	}
	return true, nil
}

// Lock implements Locker.
func (r *rawLock) Lock(ctx context.Context, key string) (Held, error) {
	held := &rawHeld{client: r.client, key: key, token: r.newToken(), release: compareAndDelete}
	return poll(ctx, held, func() (bool, error) { return r.set(ctx, r.client, key, held.token) })
}

// newToken returns a token that no other holder has.
func (r *rawLock) newToken() string { return r.process + strconv.FormatUint(r.counter.Add(1), 10) }

// poll takes a lock, and returns held. It asks again after each pause until the lock is taken or
// ctx ends.
func poll(ctx context.Context, held Held, take func() (taken bool, err error)) (Held, error) {
	for {
		if taken, err := take(); err != nil {
			return nil, err
		} else if taken {
			return held, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(rawPause):
		}
	}
}

// Close implements Locker.
func (r *rawLock) Close() error { return r.client.Close() }

// A rawHeld is a held lock.
type rawHeld struct {
	client     redis.UniversalClient
	key, token string
	release    *redis.Script // of the key, with the token; it returns 0 if the lock was not held
}

var errNotHeld = errors.New("raw: the lock was not held any more")

// Release implements Held.
func (h *rawHeld) Release(ctx context.Context) error {
	deleted, err := h.release.Run(ctx, h.client, []string{h.key}, h.token).Int()
	if err == nil && deleted == 0 {
		return errNotHeld
	}
	return err
}

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

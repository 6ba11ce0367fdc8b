package lock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// The scripts of semaphores and of shared locks as they are mostly written by hand: a sorted set
// of the holders, with the times at which they expire. The semaphore follows section 11.2.3 of
// "Redis in Action", except that it uses the server's clock. A reader is refused only while a
// writer holds the key, so readers that never pause starve the writers.
var (
	addHolder = redis.NewScript(`
		local time = redis.call("time")
		local now = time[1] * 1000 + math.floor(time[2] / 1000)
		redis.call("zremrangebyscore", KEYS[1], "-inf", now)
		if redis.call("zcard", KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
		redis.call("zadd", KEYS[1], now + ARGV[2], ARGV[1])
		redis.call("pexpire", KEYS[1], ARGV[2])
		return 1`)
	addReader = redis.NewScript(`
		if redis.call("exists", KEYS[1]) == 1 then return 0 end
		local time = redis.call("time")
		local now = time[1] * 1000 + math.floor(time[2] / 1000)
		redis.call("zremrangebyscore", KEYS[2], "-inf", now)
		redis.call("zadd", KEYS[2], now + ARGV[2], ARGV[1])
		redis.call("pexpire", KEYS[2], ARGV[2])
		return 1`)
	setWriter = redis.NewScript(`
		local time = redis.call("time")
		redis.call("zremrangebyscore", KEYS[2], "-inf", time[1] * 1000 + math.floor(time[2] / 1000))
		if redis.call("exists", KEYS[1], KEYS[2]) > 0 then return 0 end
		redis.call("set", KEYS[1], ARGV[1], "px", ARGV[2])
		return 1`)
	removeHolder = redis.NewScript(`return redis.call("zrem", KEYS[1], ARGV[1])`)
)

// A rawPermits is a semaphore by hand, on go-redis.
type rawPermits struct {
	*rawLock
	permits int
}

func openRawPermits(c Config) (Locker, error) {
	return rawPermits{rawOn(c, nil), max(1, c.Permits)}, nil
}

// Lock implements Locker.
func (r rawPermits) Lock(ctx context.Context, key string) (Held, error) {
	held := &rawHeld{client: r.client, key: key, token: r.newToken(), release: removeHolder}
	return poll(ctx, held, func() (bool, error) {
		return addHolder.Run(ctx, r.client, []string{key}, held.token, TTL.Milliseconds(), r.permits).Bool()
	})
}

// A rawShared is a lock for readers and writers by hand, on go-redis.
type rawShared struct{ *rawLock }

func openRawShared(c Config) (Locker, error) { return rawShared{rawOn(c, nil)}, nil }

// readersOf returns the name of the sorted set of a key.
func readersOf(key string) string { return key + ":readers" }

// Lock implements Locker.
func (r rawShared) Lock(ctx context.Context, key string) (Held, error) {
	return r.take(ctx, key, setWriter, &rawHeld{client: r.client, key: key, token: r.newToken(), release: compareAndDelete})
}

// Share implements Sharer.
func (r rawShared) Share(ctx context.Context, key string) (Held, error) {
	return r.take(ctx, key, addReader, &rawHeld{client: r.client, key: readersOf(key), token: r.newToken(), release: removeHolder})
}

func (r rawShared) take(ctx context.Context, key string, script *redis.Script, held *rawHeld) (Held, error) {
	return poll(ctx, held, func() (bool, error) {
		return script.Run(ctx, r.client, []string{key, readersOf(key)}, held.token, TTL.Milliseconds()).Bool()
	})
}

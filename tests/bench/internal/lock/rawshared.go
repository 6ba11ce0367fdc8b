package lock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// The scripts of a lock for readers and writers by hand. The key has the token of the writer,
// and a sorted set beside it the readers, with the times at which they expire. No reader
// stops for a writer that waits.
var (
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
)

// A rawShared is a lock for readers and writers by hand, on go-redis.
type rawShared struct{ *rawLock }

func openRawShared(c Config) (Locker, error) { return rawShared{rawOn(c, nil)}, nil }

// readersOf returns the name of the sorted set of a key, which is in the slot of the key.
func readersOf(key string) string { return "{" + key + "}:readers" }

// Lock implements Locker.
func (r rawShared) Lock(ctx context.Context, key string) (Held, error) {
	return r.take(ctx, key, setWriter, &rawHeld{client: r.client, key: key, token: r.newToken(), release: compareAndDelete})
}

// Share implements Sharer.
func (r rawShared) Share(ctx context.Context, key string) (Held, error) {
	return r.take(ctx, key, addReader, &rawHeld{client: r.client, key: readersOf(key), token: r.newToken(), release: removeHolder})
}

func (r rawShared) take(ctx context.Context, key string, script *redis.Script, held *rawHeld) (Held, error) {
	err := poll(ctx, func() (bool, error) {
		return script.Run(ctx, r.client, []string{key, readersOf(key)}, held.token, TTL.Milliseconds()).Bool()
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

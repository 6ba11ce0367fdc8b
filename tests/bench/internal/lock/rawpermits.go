package lock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// The scripts of a semaphore as it is mostly written by hand: a sorted set of the holders,
// with the times at which they expire. It follows section 11.2.3 of "Redis in Action", except
// that it uses the server's clock.
var (
	addHolder = redis.NewScript(`
		local time = redis.call("time")
		local now = time[1] * 1000 + math.floor(time[2] / 1000)
		redis.call("zremrangebyscore", KEYS[1], "-inf", now)
		if redis.call("zcard", KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
		redis.call("zadd", KEYS[1], now + ARGV[2], ARGV[1])
		redis.call("pexpire", KEYS[1], ARGV[2])
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
	err := poll(ctx, func() (bool, error) {
		return addHolder.Run(ctx, r.client, []string{key}, held.token, TTL.Milliseconds(), r.permits).Bool()
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

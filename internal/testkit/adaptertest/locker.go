package adaptertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

const (
	// Key is the key of the requests of a test. It is a secret: no answer may contain it.
	Key = "account-secret"
	// ForeignToken is the token of another process that holds Key.
	ForeignToken = "token-of-another"

	redisKey = "reqlock:" + Key
)

// LongCommands returns options of a Locker that allow 5 s for a command of Redis, so that a
// busy machine causes no fault. The TTL is 20 s, because a command may take at most a quarter of
// it. The options more follow: with a shorter TTL commands get less time.
func LongCommands(more ...core.Option) []core.Option {
	const longest = 5 * time.Second
	return append([]core.Option{core.WithTTL(4 * longest), core.WithCommandTimeout(longest)}, more...)
}

// Locker returns a Locker on an empty Redis server of the test, and another client of that
// server.
func Locker(tb testing.TB, opts ...core.Option) (*core.Locker, *redis.Client) {
	tb.Helper()
	server := redistest.Reuse(tb)
	locks := core.Must(core.New(server.Client(tb), LongCommands(opts...)...))
	CloseAfter(tb, locks)
	return locks, server.Client(tb)
}

// CloseAfter closes a Locker at the end of the test. The test fails if a lock is not
// freed within 10 s.
func CloseAfter(tb testing.TB, locks *core.Locker) {
	tb.Helper()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := locks.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
}

// UnusedLocker returns a Locker without a server, for tests that send no command.
func UnusedLocker(tb testing.TB, opts ...core.Option) *core.Locker {
	tb.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	tb.Cleanup(func() { _ = rdb.Close() })
	return core.Must(core.New(rdb, opts...))
}

// IsHeld reports whether Redis has a holder of Key.
func IsHeld(tb testing.TB, rdb *redis.Client) bool {
	tb.Helper()
	n, err := rdb.Exists(context.WithoutCancel(tb.Context()), redisKey).Result()
	if err != nil {
		tb.Errorf("EXISTS: %v", err)
	}
	return n == 1
}

// Hold locks Key for another process.
func Hold(tb testing.TB, rdb *redis.Client) {
	tb.Helper()
	args := redis.SetArgs{Mode: "NX", TTL: time.Minute}
	if err := rdb.SetArgs(tb.Context(), redisKey, ForeignToken, args).Err(); err != nil {
		tb.Fatalf("SET NX: %v", err)
	}
}

// Free deletes the lock of Key.
func Free(tb testing.TB, rdb *redis.Client) {
	tb.Helper()
	if err := rdb.Del(context.WithoutCancel(tb.Context()), redisKey).Err(); err != nil {
		tb.Errorf("DEL: %v", err)
	}
}

// IsFree reports whether a Locker can lock Key.
func IsFree(tb testing.TB, locks *core.Locker) bool {
	tb.Helper()
	lease, err := locks.TryLock(tb.Context(), Key)
	if err == nil {
		err = lease.Release(tb.Context())
	} else if errors.Is(err, core.ErrBusy) {
		return false
	}
	if err != nil {
		tb.Errorf("TryLock or Release: %v", err)
	}
	return true
}

package waiting

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

func TestMain(m *testing.M) { suite.Main(m) }

// theKey is the key that all callers lock.
const theKey = "account:42"

func now() time.Duration { return time.Duration(clock.Now()) }

// newLocker returns a Locker with a client of its own, as a process has it. It is closed
// with the test. Its command timeout is longer than the default, because commands are slow while
// other tests load the machine.
func newLocker(t *testing.T, rdb *redis.Client, opts ...core.Option) *core.Locker {
	t.Helper()
	locks, err := core.New(rdb, append([]core.Option{core.WithCommandTimeout(4 * time.Second)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := locks.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return locks
}

func countWaiters(n *atomic.Int64) core.Option {
	return core.WithObserver(func(event core.Event) {
		if event.Kind == core.Waiting {
			n.Add(1)
		}
	})
}

// queueLength returns how many processes are in the queue of the key in Redis. The
// observer of a caller is informed a moment before that.
func queueLength(t *testing.T, rdb *redis.Client) int {
	t.Helper()
	n, err := rdb.LLen(t.Context(), "{reqlock:"+theKey+"}:q").Result()
	if err != nil {
		t.Error(err)
	}
	return int(n)
}

func lock(t *testing.T, locks *core.Locker) *core.Lease {
	t.Helper()
	lease, err := locks.Lock(t.Context(), theKey)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func release(t *testing.T, lease *core.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

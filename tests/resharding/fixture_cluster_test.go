package resharding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// patience bounds the wait for what must happen.
const patience = 20 * time.Second

// newLocker returns a Locker that is closed with the test.
func newLocker(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	locks, err := core.New(rdb, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeLocker(t, locks) })
	return locks
}

// closeLocker closes a Locker of which no lock is held.
func closeLocker(t *testing.T, locks *core.Locker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := locks.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// noTTL is the TTL of a key that does not expire, and gone that of a missing key.
const noTTL, gone = -1, -2

func keysWith(t *testing.T, cluster *redistest.Cluster, tags []string) map[string]time.Duration {
	t.Helper()
	keys := make(map[string]time.Duration)
	for _, master := range cluster.Masters() {
		rdb := master.Client(t)
		iterator := rdb.Scan(t.Context(), 0, "", 1000).Iterator()
		for iterator.Next(t.Context()) {
			key := iterator.Val()
			if !slices.ContainsFunc(tags, func(tag string) bool { return strings.Contains(key, tag) }) {
				continue
			}
			if _, isTwice := keys[key]; isTwice {
				t.Errorf("%s is on two masters", key)
			}
			if ttl := rdb.PTTL(t.Context(), key).Val(); ttl != gone {
				keys[key] = ttl
			}
		}
		if err := iterator.Err(); err != nil {
			t.Fatal(err)
		}
		_ = rdb.Close()
	}
	return keys
}

// checkLeftovers waits until no key of locks and queues with these hash tags is left,
// long before such keys expire. It fails the test if a key has no TTL.
func checkLeftovers(t *testing.T, cluster *redistest.Cluster, tags ...string) {
	t.Helper()
	var left []string
	defer func() {
		if t.Failed() {
			t.Logf("left: %q", left)
		}
	}()
	suite.Eventually(t, "no lock is held and no queue is left", func() bool {
		left = left[:0]
		for key, ttl := range keysWith(t, cluster, tags) {
			switch {
			case ttl == noTTL:
				t.Errorf("%s has no TTL", key)
			case !strings.HasSuffix(key, ":f") && !strings.HasSuffix(key, ":r"):
				left = append(left, fmt.Sprintf("%s for %v", key, ttl))
			}
		}
		return len(left) == 0
	})
}

// A tryAgains counts the replies TRYAGAIN: commands with keys on both sides of a move.
type tryAgains struct{ n atomic.Int64 }

func (r *tryAgains) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *tryAgains) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		r.count(cmd)
		return err
	}
}

func (r *tryAgains) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		r.count(cmds...)
		return err
	}
}

func (r *tryAgains) count(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && strings.HasPrefix(err.Error(), "TRYAGAIN") {
			r.n.Add(1)
		}
	}
}

package core_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// With these clients, reqlock could look for a lock on another server than the one that has
// it.
func TestNewRefusesUnsafeClients(t *testing.T) {
	t.Parallel()
	sentinels := &redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}}
	sentinelCluster := func(change func(*redis.FailoverOptions)) redis.UniversalClient {
		o := *sentinels
		change(&o)
		return redis.NewFailoverClusterClient(&o)
	}
	universal := func(change func(*redis.UniversalOptions)) redis.UniversalClient {
		o := &redis.UniversalOptions{Addrs: []string{"127.0.0.1:1", "127.0.0.1:2"}}
		change(o)
		return redis.NewUniversalClient(o)
	}
	for reason, clients := range map[string][]redis.UniversalClient{
		"redis.Ring": {redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})},
		"replicas": {
			redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, ReadOnly: true}),
			redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, RouteByLatency: true}),
			redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, RouteRandomly: true}),
			sentinelCluster(func(o *redis.FailoverOptions) { o.RouteByLatency = true }),
			sentinelCluster(func(o *redis.FailoverOptions) { o.RouteRandomly = true }),
			sentinelCluster(func(o *redis.FailoverOptions) { o.ReplicaOnly = true }),
			universal(func(o *redis.UniversalOptions) { o.ReadOnly = true }),
			universal(func(o *redis.UniversalOptions) { o.RouteByLatency = true }),
			universal(func(o *redis.UniversalOptions) { o.RouteRandomly = true }),
			universal(func(o *redis.UniversalOptions) { o.MasterName, o.RouteByLatency = "m", true }),
			universal(func(o *redis.UniversalOptions) { o.MasterName, o.RouteRandomly = "m", true }),
		},
		"": {
			redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}),
			redis.NewFailoverClient(sentinels),
			redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}),
			redis.NewFailoverClusterClient(sentinels),
			universal(func(*redis.UniversalOptions) {}),
			universal(func(o *redis.UniversalOptions) { o.Addrs, o.IsClusterMode = o.Addrs[:1], true }),
			universal(func(o *redis.UniversalOptions) { o.Addrs = o.Addrs[:1] }),
			universal(func(o *redis.UniversalOptions) { o.MasterName = "m" }),
		},
	} {
		for i, rdb := range clients {
			t.Cleanup(func() { _ = rdb.Close() })
			l, err := core.New(rdb)
			switch {
			case reason == "" && (l == nil || err != nil):
				t.Errorf("%T %d is refused: %v", rdb, i, err)
			case reason != "" && (l != nil || err == nil || !strings.HasPrefix(err.Error(), "reqlock: New: ") || !strings.Contains(err.Error(), reason)):
				t.Errorf("%T %d: %v, want %q", rdb, i, err, reason)
			}
		}
	}
}

func TestViewSharesQueuesAndNotSettings(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks := newLocker(t, rdb, core.WithTTL(20*time.Second))
	view := locks.With(core.WithTTL(time.Minute), core.WithWait(0))
	lease := lock(t, locks, "k")
	if ttl := rdb.PTTL(t.Context(), "reqlock:k").Val(); ttl > 20*time.Second {
		t.Errorf("the setting of the view applies to its root: TTL %v", ttl)
	}
	wantError(t, errorOf(view.Lock(t.Context(), "k")), core.ErrBusy)
	release(t, lease)
	lease = lock(t, view, "k")
	if ttl := rdb.PTTL(t.Context(), "reqlock:k").Val(); ttl < 50*time.Second {
		t.Errorf("TTL of the view is %v", ttl)
	}
	release(t, lease)
	noError(t, view.Close(context.Background()))
	wantError(t, errorOf(locks.Lock(t.Context(), "k")), core.ErrClosed, core.ErrUnavailable)
}

func TestKeysOfALock(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	wantError(t, errorOf(locks.Lock(t.Context(), "")), core.ErrNoKey)
	wantError(t, errorOf(locks.TryLock(t.Context(), strings.Repeat("x", 4097))), core.ErrInvalidKey)
	wantError(t, locks.DoAll(t.Context(), nil, func(context.Context) error { return nil }), core.ErrNoKey)
	release(t, lock(t, locks, "\x00any bytes {go}\xff"))
	release(t, lock(t, locks, strings.Repeat("x", 4096)))
}

func TestCloseDrains(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	lease := lock(t, locks, "k")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	waiter := start(func() error { return errorOf(locks.Lock(t.Context(), "k")) })
	wantError(t, locks.Close(ctx), context.DeadlineExceeded)
	wantError(t, suite.Receive(t, "the waiter returns", waiter), core.ErrClosed)
	suite.AwaitClosed(t, "the lease ends", lease.Context().Done())
	wantError(t, context.Cause(lease.Context()), core.ErrClosed)
	wantError(t, lease.Release(t.Context()), core.ErrClosed)
	noError(t, locks.Close(t.Context()))
}

func TestLocksWithTheLongestDurations(t *testing.T) {
	t.Parallel()
	const most = time.Duration(math.MaxInt64)
	const decade = 10 * 365 * 24 * time.Hour
	for name, options := range map[string][]core.Option{
		"TTL":             {core.WithTTL(decade)},
		"wait":            {core.WithWait(most)},
		"longest hold":    {core.WithMaxHold(most)},
		"retention":       {core.WithRetention(most)},
		"command timeout": {core.WithTTL(decade), core.WithCommandTimeout(decade)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Reuse(t).Client(t)
			events := &recorder{}
			locks := newLocker(t, rdb, append(options, core.WithObserver(events.record))...)
			lease := lock(t, locks, "k")
			for _, ttl := range []time.Duration{time.Second, most} {
				if err := lease.Extend(t.Context(), ttl); err != nil {
					t.Errorf("extend by %v: %v", ttl, err)
				}
			}
			waiter := start(func() error { return locks.Do(t.Context(), "k", func(context.Context) error { return nil }) })
			suite.Eventually(t, "the second caller waits", func() bool { return len(events.of(core.Waiting)) == 1 })
			noError(t, lease.Context().Err())
			release(t, lease)
			noError(t, suite.Receive(t, "the second caller returns", waiter))
			noError(t, begin(t, locks, "k").Commit(t.Context(), []byte("answer")))
			wantReplay(t, locks, "k", "answer")
			if long := events.of(core.HeldLong); len(long) != 0 {
				t.Errorf("held long: %+v", long)
			}
		})
	}
}

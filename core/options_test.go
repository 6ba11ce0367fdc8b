package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// newEmbedded returns a client of an embedded Redis.
func newEmbedded(tb testing.TB) *redis.Client {
	tb.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(tb).Addr()})
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestErrorNamesTheBadSetting(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	for setting, opt := range map[string]core.Option{
		"WithTTL":             core.WithTTL(99 * time.Millisecond),
		"WithTTL ":            core.WithTTL(-time.Second),
		"WithWait":            core.WithWait(-1),
		"WithMaxHold":         core.WithMaxHold(-time.Second),
		"WithRetryAfter":      core.WithRetryAfter(0),
		"WithCommandTimeout":  core.WithCommandTimeout(0),
		"WithMaxWaiters":      core.WithMaxWaiters(0),
		"WithMaxTotalWaiters": core.WithMaxTotalWaiters(-1),
		"WithOpenCommits":     core.WithOpenCommits(-1, 1),
		"WithOpenCommits ":    core.WithOpenCommits(1, -1),
		"WithFailFast":        core.WithFailFast(time.Microsecond),
		"WithFailFast ":       core.WithFailFast(-time.Second),
		"WithMinHold":         core.WithMinHold(time.Microsecond),
		"WithMinHold ":        core.WithMinHold(-time.Second),
		"WithObserver":        core.WithObserver(nil),
		"WithPrefix":          core.WithPrefix("{half"),
		"WithPrefix ":         core.WithPrefix("half}"),
		"WithPrefix  ":        core.WithPrefix("{}"),
		"option":              nil,
	} {
		if l, err := core.New(rdb, opt); l != nil || err == nil || !strings.Contains(err.Error(), strings.TrimSpace(setting)) ||
			!strings.HasPrefix(err.Error(), "reqlock: ") {
			t.Errorf("%s: %v", setting, err)
		}
	}
	for _, none := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil)} {
		if l, err := core.New(none); l != nil || err == nil || !strings.Contains(err.Error(), "client") {
			t.Errorf("nil client: %v", err)
		}
	}
}

// A duration without a unit counts nanoseconds. The error says so.
func TestDurationWithoutUnitIsRefused(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	for setting, of := range map[string]func(time.Duration) core.Option{
		"WithTTL":            core.WithTTL,
		"WithWait":           core.WithWait,
		"WithMaxHold":        core.WithMaxHold,
		"WithRetryAfter":     core.WithRetryAfter,
		"WithRetention":      core.WithRetention,
		"WithCommandTimeout": core.WithCommandTimeout,
		"WithQuarantine":     core.WithQuarantine,
		"WithReplicas":       func(d time.Duration) core.Option { return core.WithReplicas(1, d) },
	} {
		for _, d := range []time.Duration{1, 5, time.Millisecond - 1} {
			_, err := core.New(rdb, of(d))
			if err == nil || !strings.HasPrefix(err.Error(), "reqlock: "+setting+": "+d.String()+" is below ") ||
				!strings.Contains(err.Error(), "5*time.Second") {
				t.Errorf("%s(%d): %v", setting, d, err)
			}
		}
	}
	for _, opt := range []core.Option{
		core.WithWait(0), core.WithMaxHold(0), core.WithWait(time.Millisecond), core.WithMaxHold(time.Millisecond), core.WithRetryAfter(time.Millisecond),
	} {
		if _, err := core.New(rdb, opt); err != nil {
			t.Error(err)
		}
	}
	lease := lock(t, newLocker(t, rdb), "k")
	if err := lease.Extend(t.Context(), 5); err == nil || !strings.Contains(err.Error(), "5*time.Second") {
		t.Errorf("Extend: %v", err)
	}
	release(t, lease)
}

func TestWithPanicsOnBadSetting(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	for setting, opt := range map[string]core.Option{
		"WithTTL":             core.WithTTL(0),
		"WithWait":            core.WithWait(-1),
		"WithPrefix":          core.WithPrefix("other:"),
		"WithCommandTimeout":  core.WithCommandTimeout(time.Second),
		"WithMaxTotalWaiters": core.WithMaxTotalWaiters(1),
		"WithOpenCommits":     core.WithOpenCommits(1, 1),
		"WithFailFast":        core.WithFailFast(time.Second),
		"WithObserver":        core.WithObserver(func(core.Event) {}),
		"option":              nil,
	} {
		t.Run(setting, func(t *testing.T) {
			defer func() {
				var message string
				switch p := recover().(type) {
				case string:
					message = p
				case error:
					message = p.Error()
				}
				if !strings.HasPrefix(message, "reqlock: ") || !strings.Contains(message, setting) {
					t.Errorf("panic %q", message)
				}
			}()
			locks.With(opt)
		})
	}
	defer func() {
		if recover() == nil {
			t.Error("Must does not panic")
		}
	}()
	core.Must(core.New(nil))
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

// With names the function that accepts the option.
func TestWithNamesTheFunctionThatAcceptsAnOption(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	for want, opt := range map[string]core.Option{
		"WithPrefix is a setting of the whole Locker, and none of a view: give it to New or NewQuorum": core.WithPrefix("other:"),
		"WithQuarantine is a setting of the whole Locker, and none of a view: give it to NewQuorum":    core.WithQuarantine(time.Minute),
		"WithReplicas is a setting of the whole Locker, and none of a view: give it to New":            core.WithReplicas(1, time.Second),
	} {
		func() {
			defer func() {
				if got, ok := recover().(error); !ok || got.Error() != "reqlock: "+want {
					t.Errorf("panic %v, want %s", got, want)
				}
			}()
			locks.With(opt)
		}()
	}
}

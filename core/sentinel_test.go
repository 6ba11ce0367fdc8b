package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A Sentinel that does not know the master replies nil. The nil must not count as the reply
// to the command that needs the master.
func TestUnknownMasterIsUnavailable(t *testing.T) {
	t.Parallel()
	servers := shared(t, redistest.OnSentinels)
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "unknown", SentinelAddrs: servers.Options().Addrs, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	locks := servers.newLocker(t, rdb, core.WithWait(300*time.Millisecond))
	_, err := locks.TryLock(t.Context(), "k")
	wantError(t, err, core.ErrUnavailable)
	wantError(t, errorOf(locks.Lock(t.Context(), "k")), core.ErrUnavailable)
	wantError(t, errorOf(locks.With(core.WithFencing(true)).TryLock(t.Context(), "k")), core.ErrUnavailable)
	wantError(t, errorOf(locks.Begin(t.Context(), "k", nil)), core.ErrUnavailable)

	err = locks.Check(t.Context())
	wantFinding(t, err, "MasterName", "SentinelAddrs")
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %v", err)
	}
}

func TestCheckOfClientOfASentinel(t *testing.T) {
	t.Parallel()
	servers := shared(t, redistest.OnSentinels)
	rdb := redis.NewClient(&redis.Options{Addr: servers.Options().Addrs[0]})
	t.Cleanup(func() { _ = rdb.Close() })
	wantFinding(t, servers.newLocker(t, rdb).Check(t.Context()), "redis.NewFailoverClient")
}

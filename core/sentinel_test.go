package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// Sentinels that know no such master say so by a nil, which is no answer to the
// command for which a master was sought.
func TestNobodyHoldsAKeyOfAMasterThatNoSentinelKnows(t *testing.T) {
	sentinels := redistest.StartSentinel(t)
	rdb := sentinels.Client(t, func(o *redis.FailoverOptions) { o.MasterName, o.DialerRetries = "nobody", 1 })
	locks := newLocker(t, rdb, core.WithWait(300*time.Millisecond))
	_, err := locks.TryLock(t.Context(), "k")
	wantError(t, err, core.ErrUnavailable)
	_, err = locks.Lock(t.Context(), "k")
	wantError(t, err, core.ErrUnavailable)
	_, err = locks.With(core.WithFencing(true)).TryLock(t.Context(), "k")
	wantError(t, err, core.ErrUnavailable)
	_, err = locks.Begin(t.Context(), "k", nil)
	wantError(t, err, core.ErrUnavailable)

	err = locks.Check(t.Context())
	wantFinding(t, err, "MasterName", "SentinelAddrs")
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %v", err)
	}
}

func TestCheckOfASentinelItself(t *testing.T) {
	sentinel := redistest.StartSentinel(t).Sentinels()[0]
	rdb := redis.NewClient(&redis.Options{Addr: sentinel.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	wantFinding(t, newLocker(t, rdb).Check(t.Context()), "redis.NewFailoverClient")
}

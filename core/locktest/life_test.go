package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// A pause of the machine does not look like a fault of Redis.
func TestPauseIsNoFault(t *testing.T) {
	t.Parallel()
	locks := New(t)
	locks.redis.Lock()
	time.AfterFunc(700*time.Millisecond, locks.redis.Unlock)
	if _, err := locks.TryLock(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func TestEndOfTestClosesEverything(t *testing.T) {
	t.Parallel()
	var locks *Locks
	var lease *core.Lease
	t.Run("a test that releases nothing", func(t *testing.T) {
		locks = New(t)
		locks.Hold("other")
		var err error
		if lease, err = locks.TryLock(context.Background(), "a"); err != nil {
			t.Fatal(err)
		}
	})
	if cause := context.Cause(lease.Context()); !errors.Is(cause, core.ErrClosed) {
		t.Errorf("the cause is %v", cause)
	}
	for name, p := range map[string]*process{"tested": locks.tested, "other": locks.other} {
		if _, err := p.locker.TryLock(t.Context(), "b"); !errors.Is(err, core.ErrClosed) {
			t.Errorf("the %s Locker returns %v", name, err)
		}
		if err := p.link.client.Ping(t.Context()).Err(); !errors.Is(err, redis.ErrClosed) {
			t.Errorf("the %s client returns %v", name, err)
		}
	}
	if locks.redis.Server() != nil {
		t.Error("the embedded Redis still runs")
	}
}

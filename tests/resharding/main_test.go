package resharding

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// newLocker returns a Locker that is closed with the test, which waits for it.
func newLocker(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	locks, err := core.New(rdb, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, locks) })
	return locks
}

// shut closes a Locker, which must not take long: nobody holds a lock of it.
func shut(t *testing.T, locks *core.Locker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := locks.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// patience is after how long what does not happen is taken for never.
const patience = 20 * time.Second

// await polls until the condition holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("not so in time: %s", what)
		}
	}
}

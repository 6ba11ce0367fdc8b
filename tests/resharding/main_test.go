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

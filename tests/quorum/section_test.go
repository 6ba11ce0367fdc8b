package quorum

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// checkHistory fails the test if holds overlap, and removes all holds.
func checkHistory(t *testing.T, r *history.Recorder) {
	t.Helper()
	for _, violation := range r.Take().Exclusion() {
		t.Error(violation)
	}
}

// runSection is the critical section under the lock whose lease ctx carries. It lasts
// for a time, or until the lease ends.
func runSection(ctx context.Context, r *history.Recorder, holder string, duration time.Duration) {
	granted := r.Now()
	lease, _ := core.FromContext(ctx)
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	r.Add(&history.Hold{
		Key: lease.Key(), Holder: holder, Granted: granted, Ended: r.At(earlier(time.Now(), lease.ValidUntil())),
	})
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

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
	h := r.Take()
	history.Report(t, h, map[string][]string{"exclusion": h.Holds().Exclusion()})
}

// runSection is the critical section under the lock whose lease ctx carries. It lasts
// for a time, or until the lease ends.
func runSection(ctx context.Context, r *history.Recorder, holder string, duration time.Duration) {
	lease, _ := core.FromContext(ctx)
	held := r.Granted(history.Op{Name: holder}, lease)
	defer held.End()
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

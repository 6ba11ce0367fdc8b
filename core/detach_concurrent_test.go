package core_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// Either the release comes first, or Detach.
func TestDetachDuringRelease(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t), withoutResend(core.WithMaxHold(time.Minute))...)
	for range 200 {
		all, err := locks.LockAll(t.Context(), []string{"a", "b"})
		noError(t, err)
		released := start(func() error { return all.Release(t.Context()) })
		work, err := core.Detach(all.Context())
		if err != nil {
			wantError(t, err, core.ErrLost)
		}
		noError(t, <-released)
		noError(t, work.Release(t.Context()))
		if all.Context().Err() == nil || !isFree(t, locks, "a") || !isFree(t, locks, "b") {
			t.Fatal("a lock is held, or the context of the handler goes on")
		}
	}
}

// One of several calls at the same time takes all locks, and the others none.
func TestOneDetachTakesTheLocks(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t), withoutResend(core.WithMaxHold(time.Minute))...)
	keys := strings.Split("abcdefghijklmnop", "")
	for range 50 {
		all, err := locks.LockAll(t.Context(), keys)
		noError(t, err)
		var calls sync.WaitGroup
		var works [4]*core.LeaseSet
		for i := range works {
			calls.Go(func() { works[i], _ = core.Detach(all.Context()) })
		}
		calls.Wait()
		taken := slices.DeleteFunc(works[:], func(work *core.LeaseSet) bool { return work == nil })
		if len(taken) != 1 || len(taken[0].Leases()) != len(keys) {
			t.Fatalf("%d calls have taken the locks", len(taken))
		}
		release(t, all.Lease("a"))
		noError(t, taken[0].Context().Err())
		noError(t, taken[0].Release(t.Context()))
		noError(t, all.Release(t.Context()))
	}
}

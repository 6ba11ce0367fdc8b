package waiting

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A waiter whose subscription breaks just before the release misses the notification. It
// checks the lock again after it has resubscribed, long before its safety timer.
func TestAMissedReleaseIsSeenAtTheNextSubscription(t *testing.T) {
	t.Parallel()
	const rounds, soon = 5, 500 * time.Millisecond
	server := redistest.Start(t)
	admin := server.Client(t)
	holder := newLocker(t, server.Client(t))
	var took []time.Duration
	for range rounds {
		outer := lock(t, holder)
		var waiting atomic.Int64
		waiter := newLocker(t, server.Client(t), countWaiters(&waiting)) // a new Locker resubscribes soonest
		served := make(chan *core.Lease, 1)
		go func() {
			defer close(served)
			if lease, err := waiter.Lock(t.Context(), theKey); err != nil {
				t.Error(err)
			} else {
				served <- lease
			}
		}()
		suite.Eventually(t, "it waits", func() bool { return waiting.Load() == 1 && queueLength(t, admin) == 1 })
		if cut := admin.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Val(); cut == 0 {
			t.Error("no subscription was cut")
		}
		begun := time.Now()
		release(t, outer)
		if lease := suite.Receive(t, "the waiter returns", served); lease != nil {
			took = append(took, time.Since(begun))
			release(t, lease)
		}
	}
	slices.Sort(took)
	t.Logf("served after %v", took)
	// A busy machine may delay some resubscriptions past the timer, so only the median
	// counts.
	if len(took) < rounds || took[rounds/2] > soon {
		t.Errorf("most are not served within %v: %v", soon, took)
	}
}

package waiting

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A waiter whose subscription breaks just before the release is not told. It
// looks again when it has subscribed anew, long before its safety timer.
//
//faults:row 27
func TestAMissedReleaseIsSeenAtTheNextSubscription(t *testing.T) {
	const rounds, soon = 5, 500 * time.Millisecond
	server := redistest.Start(t)
	admin := server.Client(t)
	holder := newLocker(t, server.Client(t))
	var took []time.Duration
	for range rounds {
		outer := lock(t, holder)
		var waiting atomic.Int64
		waiter := newLocker(t, server.Client(t), waitingFor(&waiting)) // a fresh one tries again soonest
		served := make(chan *core.Lease)
		go func() {
			defer close(served)
			if lease, err := waiter.Lock(t.Context(), theKey); err != nil {
				t.Error(err)
			} else {
				served <- lease
			}
		}()
		await(t, "it waits", func() bool { return waiting.Load() == 1 && inLine(t, admin) == 1 })
		if cut := admin.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Val(); cut == 0 {
			t.Error("no subscription was cut")
		}
		begun := time.Now()
		release(t, outer)
		if lease := <-served; lease != nil {
			took = append(took, time.Since(begun))
			release(t, lease)
		}
	}
	slices.Sort(took)
	t.Logf("served after %v", took)
	// Where the machine stalls, the timer may be first.
	if len(took) < rounds || took[rounds/2] > soon {
		t.Errorf("most are not served within %v: %v", soon, took)
	}
}

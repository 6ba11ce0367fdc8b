package waiting

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// Fifty wait in one process for a key that another process holds. In one second
// the two may send the renewals of the holder, and one safety check. A busy machine
// may make it longer, and has room for more of these.
//
//faults:row 30
func TestWaitersCostNothingWhileTheyWait(t *testing.T) {
	const waiters = 50
	for name, ttl := range map[string]time.Duration{"no renewal is due": 10 * time.Second, "renewals are due": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			admin := server.Client(t)
			var sent, waiting, renewals atomic.Int64

			holder := server.Client(t)
			holder.AddHook(counter{&sent})
			outer := lock(t, newLocker(t, holder, core.WithTTL(ttl), core.WithFencing(true), core.WithObserver(func(event core.Event) {
				if event.Kind == core.Renewed {
					renewals.Add(1)
				}
			})))

			others := server.Client(t)
			others.AddHook(counter{&sent})
			locks := newLocker(t, others, core.WithTTL(ttl), core.WithFencing(true), waitingFor(&waiting))
			var group sync.WaitGroup
			for range waiters {
				group.Go(func() {
					if err := locks.Do(t.Context(), theKey, func(context.Context) error { return nil }); err != nil {
						t.Error(err)
					}
				})
			}
			await(t, "all wait", func() bool { return waiting.Load() == waiters && inLine(t, admin) == 1 })
			if ttl < 10*time.Second {
				// So that no renewal is under way at either end of the second.
				await(t, "a renewal has passed", func() bool { return renewals.Load() > 0 })
			}

			begun := time.Now()
			before, sentBefore, renewed := commandStats(t, admin), sent.Load(), renewals.Load()
			<-time.After(time.Second)
			clients, after := sent.Load()-sentBefore, commandStats(t, admin)
			renewed = renewals.Load() - renewed
			more := int64((time.Since(begun) - time.Second) / (500 * time.Millisecond)) // where the second was longer

			// What a script runs counts as well, but none does a SET here.
			ran := sum(after, asking...) - sum(before, asking...)
			t.Logf("in a second %d waiters and a holder sent %d commands, of which %d were renewals; the server ran %d; and %d PING",
				waiters, clients, renewed, ran, after["ping"]-before["ping"])
			if clients > renewed+1+more || ran > renewed+1+more {
				t.Errorf("%d commands were sent and %d run, for %d renewals and one safety check", clients, ran, renewed)
			}
			if ttl < 10*time.Second && renewed == 0 {
				t.Error("no renewal was due")
			}
			release(t, outer)
			group.Wait()
		})
	}
}

// asking are the commands with which a lock is asked for.
var asking = []string{"evalsha", "eval", "evalsha_ro", "fcall", "script|load", "set", "setnx", "subscribe", "exists"}

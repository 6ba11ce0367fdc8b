package core_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestEventsOfALock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 2 * time.Second // HeldLong comes after three TTLs
		events, second := &recorder{}, &recorder{}
		locks := locktest.New(t, core.WithTTL(ttl), core.WithObserver(events.record), core.WithObserver(second.record))

		lease := lock(t, locks.Locker, "k")
		wantError(t, errorOf(locks.TryLock(t.Context(), "k")), core.ErrBusy)
		next := startLock(t, locks.Locker, "k")
		locks.AwaitWaiting("k", 1)
		time.Sleep(4 * ttl)
		if len(events.of(core.Waiting)) != 1 || len(events.of(core.Renewed)) == 0 {
			t.Errorf("waiting: %+v, renewed: %+v", events.of(core.Waiting), events.of(core.Renewed))
		}
		if long := events.of(core.HeldLong); len(long) != 1 || long[0].Held < 3*ttl {
			t.Errorf("held long: %+v", long)
		}
		release(t, lease)
		release(t, next())
		synctest.Wait() // the observer has received all events

		acquired := events.of(core.Acquired)
		if len(acquired) != 2 || acquired[0].Queued || acquired[0].Grant != core.GrantFree || acquired[0].Waited > ttl ||
			!acquired[1].Queued || acquired[1].Grant != core.GrantPassed || acquired[1].Waited != 4*ttl {
			t.Errorf("acquired: %+v", acquired)
		}
		if refused := events.of(core.Refused); len(refused) != 1 || refused[0].Queued {
			t.Errorf("refused: %+v", refused)
		} else {
			wantError(t, refused[0].Err, core.ErrBusy)
		}
		// Each holder reports its release on a goroutine of its own, in any order.
		released := events.of(core.Released)
		slices.SortFunc(released, func(a, b core.Event) int { return cmp.Compare(b.Held, a.Held) })
		if len(released) != 2 || released[0].Held != 4*ttl || released[0].Err != nil || released[1].Err != nil {
			t.Errorf("released: %+v", released)
		}
		if len(second.of(core.Acquired)) != 2 {
			t.Error("the second observer received no events")
		}

		lease = lock(t, locks.Locker, "k")
		locks.Expire("k")
		<-lease.Context().Done()
		synctest.Wait()
		lost := events.of(core.Lost)
		if len(lost) != 1 {
			t.Fatalf("lost: %+v", lost)
		}
		wantError(t, lost[0].Err, core.ErrLost)
		wantError(t, lease.Release(t.Context()), core.ErrLost)
		// Expire takes and releases a lock of its own. Its event is the third one.
		if released := events.of(core.Released); len(released) != 4 {
			t.Errorf("released: %+v", released)
		} else {
			wantError(t, released[3].Err, core.ErrLost)
		}
	})
}

func TestEventDoesNotPrintItsKey(t *testing.T) {
	t.Parallel()
	var log logBuffer
	locks, events := observed(t, newEmbedded(t), log.all()...)
	const secret = "iban DE02120300000000202051"
	lease := lock(t, locks, secret)
	_, _ = locks.TryLock(t.Context(), secret)
	token := lease.Token()
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, lease); strings.Contains(text, "DE02") || strings.Contains(text, token) {
			t.Errorf("a lease prints its key or its token: %s", text)
		}
	}
	release(t, lease)

	event := events.of(core.Acquired)[0]
	if event.Key.Raw() != secret {
		t.Error("Raw does not return the key")
	}
	asJSON, err := json.Marshal(event)
	noError(t, err)
	for _, text := range []string{
		fmt.Sprint(event), fmt.Sprintf("%+v", event), fmt.Sprintf("%#v", event), event.Key.String(), string(asJSON), log.String(),
	} {
		if strings.Contains(text, "DE02") || strings.Contains(text, token) {
			t.Errorf("prints the key or the token: %s", text)
		}
		if !strings.Contains(text, event.Key.String()) {
			t.Errorf("does not print the digest: %s", text)
		}
	}
}

// The release of an attempt says how the attempt ended, and so does Committed. Other events
// have no ending.
func TestEventsSayHowAnAttemptEnded(t *testing.T) {
	t.Parallel()
	for ending, test := range map[core.Ending]struct {
		end       func(a *core.Attempt) error
		committed int
	}{
		core.EndCommit:  {func(a *core.Attempt) error { return a.Commit(context.Background(), []byte("answer")) }, 1},
		core.EndDone:    {func(a *core.Attempt) error { return a.Done(context.Background()) }, 1},
		core.EndAbort:   {func(a *core.Attempt) error { return a.Abort(context.Background()) }, 0},
		core.EndUnknown: {func(a *core.Attempt) error { return a.Unknown(context.Background(), nil) }, 0},
	} {
		t.Run(ending.String(), func(t *testing.T) {
			t.Parallel()
			locks, events := observed(t, newEmbedded(t))
			noError(t, test.end(begin(t, locks, "k")))
			suite.Eventually(t, "the release is observed", func() bool { return len(events.of(core.Released)) == 1 })
			committed := events.of(core.Committed)
			if len(committed) != test.committed {
				t.Errorf("%d commits", len(committed))
			}
			for _, event := range events.all() {
				want := core.Ending(0)
				if event.Kind == core.Released || event.Kind == core.Committed {
					want = ending
				}
				if event.Ending != want || !event.Idempotent {
					t.Errorf("%v: ending %v, attempt %t", event.Kind, event.Ending, event.Idempotent)
				}
			}
			release(t, lock(t, locks, "k"))
			suite.Eventually(t, "the plain release is observed", func() bool { return len(events.of(core.Released)) == 2 })
			if plain := events.of(core.Released)[1]; plain.Ending != 0 || plain.Idempotent {
				t.Errorf("a plain lock: %+v", plain)
			}
		})
	}
	if got := core.Ending(0).String(); got != "undecided" {
		t.Error(got)
	}
}

package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// No process holds the key after a split vote. So a nowait caller asks a few times,
// each time after a pause, before it is refused as Busy.
func TestSplitVoteIsRepeated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		splits int
		want   Reason
	}{"until it is granted": {maxSplits, 0}, "until it is busy": {maxSplits + 1, Busy}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, v, r := newVotingEngine(t, func(n int, _ storetest.AnyRequest) (store.Answer, error) {
					if n < c.splits {
						return splitAnswer, nil
					}
					return grantedAnswer(), nil
				})
				h, err := e.Acquire(t.Context(), request(0))
				switch {
				case c.want == 0 && err != nil, c.want != 0 && reasonOf(t, err) != c.want:
					t.Errorf("got %v", err)
				case err == nil:
					release(t, h)
				}
				if got, want := len(v.questions()), maxSplits+1; got != want {
					t.Errorf("asked %d times, want %d", got, want)
				}
				if v.times[maxSplits].Equal(v.times[0]) {
					t.Error("asked again without a pause")
				}
				if len(r.of(Waiting)) != 0 {
					t.Error("a split vote is reported as a wait")
				}
			})
		})
	}
}

// A caller that may wait asks until the vote is not split.
func TestWaiterOutlastsSplitVotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, v, _ := newVotingEngine(t, func(n int, _ storetest.AnyRequest) (store.Answer, error) {
			if n < 5*maxSplits {
				return splitAnswer, nil
			}
			return grantedAnswer(), nil
		})
		release(t, hold(t, e, request(WaitForever)))
		longest := time.Duration(0)
		for i, at := range v.times[1:] {
			longest = max(longest, at.Sub(v.times[i]))
		}
		if longest > maxPause {
			t.Errorf("paused for %v", longest)
		}
	})
}

// When the wait of a caller ends during split votes, the reason is contention: the
// store answered, and other processes asked.
func TestTimeoutDuringSplitVotesIsContention(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer store.Answer
		wait   time.Duration
		want   Reason
	}{
		"a nowait caller":      {splitAnswer, 0, Busy},
		"a waiter":             {splitAnswer, bound, TimedOut},
		"without a split vote": {grantedAnswer(), 0, Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, _, _ := newVotingEngine(t, func(n int, _ storetest.AnyRequest) (store.Answer, error) {
					if n == 0 && !c.answer.Granted {
						return c.answer, nil
					}
					time.Sleep(2 * bound) // the reply for the other caller
					return heldAnswer, nil
				})
				ctx, leave := context.WithCancel(t.Context())
				first := make(chan struct{})
				go func() {
					defer close(first)
					_, _ = e.Acquire(ctx, request(WaitForever))
				}()
				synctest.Wait()
				if _, err := e.Acquire(t.Context(), request(c.wait)); reasonOf(t, err) != c.want {
					t.Errorf("got %v", err)
				}
				leave()
				<-first
			})
		})
	}
}

// A split vote long after the last one starts a new row.
func TestSplitVotesInARow(t *testing.T) {
	t.Parallel()
	var p pauses
	p.afterSplit()
	p.after(heldAnswer, nil, false)
	if p.splits != 0 {
		t.Errorf("%d in a row", p.splits)
	}
}

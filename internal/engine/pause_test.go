package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestPauses(t *testing.T) {
	t.Parallel()
	all := func(d ...time.Duration) []time.Duration { return d }
	aMinute := store.Answer{Remaining: time.Minute}
	for name, test := range map[string]struct {
		answer       store.Answer
		err          error
		notListening bool
		least, most  []time.Duration // of the first pauses in a row; the last one repeats
	}{
		"a hint will come":       {aMinute, nil, false, all(time.Second), all(1250 * time.Millisecond)},
		"the key has no TTL":     {store.Answer{Remaining: -1}, nil, false, all(time.Second), all(1250 * time.Millisecond)},
		"the key expires before": {store.Answer{Remaining: 100 * time.Millisecond}, nil, false, all(100 * time.Millisecond), all(125 * time.Millisecond)},
		"no hint":                {store.Answer{ForeignHolder: true, Remaining: time.Minute}, nil, false, pollPauses[:], pollPauses[:]},
		"not listening":          {aMinute, nil, true, pollPauses[:], pollPauses[:]},
		"no hint, and the key expires before": {
			store.Answer{ForeignHolder: true, Remaining: 10 * time.Millisecond},
			nil, false, all(10 * time.Millisecond), all(10 * time.Millisecond),
		},
		"faults": {store.Answer{}, errDown, false, all(minPause/2, minPause, 2*minPause), all(minPause, 2*minPause, maxPause)},
	} {
		for range 100 {
			var p pauses
			for i := range 12 {
				n := min(i, len(test.least)-1)
				if d := p.after(test.answer, test.err, test.notListening); d < test.least[n] || d > test.most[n] {
					t.Fatalf("%s: pause %d is %v, want %v to %v", name, i, d, test.least[n], test.most[n])
				}
			}
		}
	}
}

// A reply after faults, polls or split votes starts each row of pauses anew.
func TestReplyResetsPauses(t *testing.T) {
	t.Parallel()
	var p pauses
	foreign, down := store.Answer{ForeignHolder: true}, errors.New("down")
	for range 10 {
		p.after(foreign, nil, false)
	}
	p.after(heldAnswer, nil, false)
	if d := p.after(foreign, nil, false); d != pollPauses[0] {
		t.Errorf("the next poll pauses for %v", d)
	}
	for range 10 {
		p.after(store.Answer{}, down, false)
		p.afterSplit()
	}
	p.after(heldAnswer, nil, false)
	if d := p.after(store.Answer{}, down, false); d > minPause || p.splits != 0 {
		t.Errorf("the next fault pauses for %v, after %d split votes in a row", d, p.splits)
	}
}

// No process holds the key after a split vote. So a nowait caller asks a few times,
// each time after a pause, before it is refused as Busy.
func TestSplitVoteIsRepeated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		splits int
		want   Reason
	}{"until it is granted": {maxSplits, 0}, "until it is busy": {maxSplits + 1, Busy}} {
		row(t, name, func(t *testing.T) {
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
	}
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
		row(t, name, func(t *testing.T) {
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
	}
}

package engine

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Each request is its own ballot, while one token stays in the store's queue. The lease
// has the token of the ballot.
func TestEachRequestIsABallot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, v, _ := newVotingEngine(t, func(n int, _ storetest.AnyRequest) (store.Answer, error) {
			return []store.Answer{heldAnswer, heldAnswer, splitAnswer, grantedAnswer()}[n], nil
		})
		h := hold(t, e, request(WaitForever))
		asked := v.questions()
		if len(asked) != 4 || h.Token() != asked[3].Token {
			t.Fatalf("asked %d times, for %q", len(asked), h.Token())
		}
		seen := map[string]bool{asked[0].Waiter: true}
		for i, r := range asked {
			if seen[r.Token] || r.Waiter != asked[0].Waiter || r.Join != (i > 0) {
				t.Errorf("question %d: %+v", i, r)
			}
			seen[r.Token] = true
		}
		release(t, h)
		if got := v.tokens(); !slices.Equal(got, []string{h.Token()}) {
			t.Errorf("released %q", got)
		}
	})
}

// A hint that names a ballot in flight does not release it, because it may be granted.
// A ballot that was refused is released when it is seen in the key.
func TestHintReleasesOnlyRefusedBallots(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var v *votingStore
		var e *Engine
		e, v, _ = newVotingEngine(t, func(n int, r storetest.AnyRequest) (store.Answer, error) {
			switch n {
			case 0:
				return heldAnswer, nil
			case 1:
				v.hint("k", r.Token) // in flight
				v.hint("k", v.questions()[0].Token)
				synctest.Wait()
			}
			return grantedAnswer(), nil
		})
		h := hold(t, e, request(WaitForever))
		v.hint("k", h.Token())
		synctest.Wait()
		if got, want := v.tokens(), []string{v.questions()[0].Token}; !slices.Equal(got, want) {
			t.Errorf("released %q, want %q", got, want)
		}
		release(t, h)
	})
}

func TestHintOfRefusedBallotReleasesIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, v, _ := newVotingEngine(t, func(int, storetest.AnyRequest) (store.Answer, error) { return heldAnswer, nil })
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			_, _ = e.Acquire(ctx, request(WaitForever))
		}()
		synctest.Wait() // until it pauses
		asked := v.questions()
		lost := asked[len(asked)-1].Token
		v.hint("k", lost)
		synctest.Wait()
		if got := v.tokens(); !slices.Equal(got, []string{lost}) {
			t.Errorf("released %q, want %q", got, lost)
		}
		cancel()
		<-left
	})
}

// A waiter that gives up leaves the store's queue, also if its ballot got no reply.
func TestWaiterWithBallotsLeavesStoreQueue(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		store.Answer
		err error
	}{
		"refused": {Answer: heldAnswer},
		"split":   {Answer: splitAnswer},
		"unknown": {err: &store.Fault{Unknown: true, Temporary: true, Err: context.Canceled}},
	} {
		row(t, name, func(t *testing.T) {
			e, v, _ := newVotingEngine(t, func(int, storetest.AnyRequest) (store.Answer, error) { return answer.Answer, answer.err })
			_, err := e.Acquire(t.Context(), request(5*time.Second))
			if reason := reasonOf(t, err); (reason == Unavailable) != (answer.err != nil) {
				t.Errorf("got %v", reason)
			}
			synctest.Wait()
			asked := v.questions()
			if joined := asked[len(asked)-1].Join; joined && !slices.Equal(v.tokens(), []string{asked[0].Waiter}) {
				t.Errorf("released %q, want %q", v.tokens(), asked[0].Waiter)
			}
			checkNoQueue(t, e)
		})
	}
}

// A ballot that was granted too late is released, and the waiter waits on.
func TestLateBallotIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, v, _ := newVotingEngine(t, func(n int, _ storetest.AnyRequest) (store.Answer, error) {
			late := grantedAnswer()
			if n == 0 {
				late.Since = late.Since.Add(-time.Minute)
			}
			return late, nil
		})
		h := hold(t, e, request(WaitForever))
		synctest.Wait()
		if got, want := v.tokens(), []string{v.questions()[0].Token}; !slices.Equal(got, want) {
			t.Errorf("released %q, want %q", got, want)
		}
		if asked := v.questions(); asked[0].Waiter != asked[1].Waiter {
			t.Error("another token is queued")
		}
		release(t, h)
	})
}

// Each process that asks at the same time sends a hint at each server that voted for
// this ballot. The hint must not cut the pause after a split vote short: all processes
// that split the vote would do so again.
func TestHintOfBallotInFlightKeepsPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const splits = 20
		var v *votingStore
		e, v, _ := newVotingEngine(t, func(n int, r storetest.AnyRequest) (store.Answer, error) {
			if n == splits {
				return grantedAnswer(), nil
			}
			v.hint(r.Key, r.Token)
			return splitAnswer, nil
		})
		h := hold(t, e, request(WaitForever))
		if took := v.times[splits].Sub(v.times[0]); took < maxPause {
			t.Errorf("%d split votes took %v", splits, took)
		}
		for i, at := range v.times[1:] {
			if pause := at.Sub(v.times[i]); pause > maxPause {
				t.Errorf("paused for %v", pause)
			}
		}
		release(t, h)
	})
}

// A lease that is found lost between two holders is released, because a minority of the
// servers may still have the token.
func TestBallotLostBetweenHoldersIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, v, _ := newVotingEngine(t, func(int, storetest.AnyRequest) (store.Answer, error) { return grantedAnswer(), nil })
		v.losing = true
		unrenewed := Request{Key: "k", TTL: 10 * time.Second, MaxWaiters: 1000, Wait: WaitForever}
		first := hold(t, e, unrenewed)
		second := make(chan *Hold)
		go func() { second <- hold(t, e, unrenewed) }()
		synctest.Wait()
		release(t, first)
		h := <-second
		if h.Token() == first.Token() {
			t.Fatal("the lease was passed on")
		}
		if !slices.Contains(v.tokens(), first.Token()) {
			t.Errorf("released %v, and not %s", v.tokens(), first.Token())
		}
		release(t, h)
	})
}

// A lease of a ballot passes to a waiter that needs a longer TTL, after a renewal.
func TestBallotIsPassedAfterRenewal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, v, _ := newVotingEngine(t, func(int, storetest.AnyRequest) (store.Answer, error) { return grantedAnswer(), nil })
		first := hold(t, e, request(0))
		token := ""
		waiting(t, e, longer(WaitForever), func(h *Hold) { token = h.Token() })
		release(t, first)
		synctest.Wait()
		if token != first.Token() || len(v.tokens()) != 1 {
			t.Errorf("passed on as %q, released %q", token, v.tokens())
		}
	})
}

// A hint of the ballot in flight means that others wait: the passes of its lease are
// limited.
func TestHintOfBallotInFlightLimitsPasses(t *testing.T) {
	t.Parallel()
	for name, hinted := range map[string]bool{"with a hint": true, "without": false} {
		row(t, name, func(t *testing.T) {
			var v *votingStore
			e, v, _ := newVotingEngine(t, func(n int, r storetest.AnyRequest) (store.Answer, error) {
				if n == 0 {
					return heldAnswer, nil
				}
				answer := grantedAnswer()
				time.Sleep(time.Millisecond)
				if hinted {
					v.hint(r.Key, r.Token)
				}
				return answer, nil
			})
			h := hold(t, e, request(WaitForever))
			if h.lease.budget.unlimited == hinted {
				t.Errorf("unlimited: %v", h.lease.budget.unlimited)
			}
			release(t, h)
		})
	}
}

// The release of a dead token that was found in the key leaves the waiter in the
// store's queue.
func TestReleaseOfDeadTokenKeepsWaiterQueued(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var orphan string
		e, v, _ := newVotingEngine(t, func(n int, _ storetest.AnyRequest) (store.Answer, error) {
			if n == 1 {
				return store.Answer{Holder: orphan, Remaining: time.Minute}, nil
			}
			return grantedAnswer(), nil
		})
		orphan = deadToken(t, e)
		h := hold(t, e, request(WaitForever))
		if swept := v.released[1]; swept.Token != orphan || swept.Waiter != "" {
			t.Errorf("released %+v", swept)
		}
		release(t, h)
	})
}

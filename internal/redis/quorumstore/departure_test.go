package quorumstore

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A vote that arrives after the release is withdrawn again, unless the withdrawal of the release has
// found it.
func TestVoteThatArrivesAfterTheReleaseLeaves(t *testing.T) {
	t.Parallel()
	late, twice := granted(sent).answer, granted(sent).answer
	twice.SentTwice = true
	for name, c := range map[string]struct {
		vote   store.Answer
		status store.ReleaseStatus
		err    error
		want   int // withdrawals
	}{
		"the withdrawal has found it":       {late, store.Freed, nil, 1},
		"it has found it, and others wait":  {late, store.Handed, nil, 1},
		"it has not found it":               {late, store.NotHeld, nil, 2},
		"an earlier send may have found it": {late, store.Unsure, nil, 2},
		"it has failed":                     {late, store.NotHeld, errPermanent, 2},
		"the vote may be given again":       {twice, store.Freed, nil, 2},
		"the server has refused the ballot": {refused("h", 0).answer, store.NotHeld, nil, 1},
	} {
		for _, voteIsFirst := range []bool{true, false} {
			bubble(t, name, func(t *testing.T) {
				s, fakes := leaseOfTwo()
				s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), func(store.ReleaseResult, error) {})
				withdrawn := fakes[2].withdrawals[0]
				if voteIsFirst {
					fakes[2].votes[0].answer(c.vote, nil)
					withdrawn.answer(store.ReleaseResult{Status: c.status}, c.err)
				} else {
					withdrawn.answer(store.ReleaseResult{Status: c.status}, c.err)
					fakes[2].votes[0].answer(c.vote, nil)
				}
				if n := len(fakes[2].withdrawals); n != c.want {
					t.Errorf("%d withdrawals, want %d (the vote is first: %t)", n, c.want, voteIsFirst)
				}
			})
		}
	}
}

// A server that was asked twice may vote after the withdrawal of the release has found its first
// vote.
func TestEachOfTwoLateVotesIsWithdrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := leaseOfTwo()
		s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: time.Second}.Renew(), func(store.Renewal, error) {})
		fakes[2].renewals[0].answer(store.Renewal{}, nil)
		s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), func(store.ReleaseResult, error) {})
		fakes[2].withdrawals[0].answer(store.ReleaseResult{Status: store.Freed}, nil)
		for _, vote := range fakes[2].votes {
			vote.answer(granted(sent).answer, nil)
		}
		if asked, n := len(fakes[2].votes), len(fakes[2].withdrawals); asked != 2 || n != 3 {
			t.Errorf("asked %d times, %d withdrawals", asked, n)
		}
	})
}

// A vote that a renewal asks for again has the long form: it raises the TTL of a vote that came late.
func TestOnlyTheFirstVoteIsBrief(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		withHolder  bool
		first, next bool
	}{"without a wish for the holder": {false, true, false}, "with it": {true, false, false}} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(3)
			r := request()
			r.WithHolder = c.withHolder
			s.Enqueue(r.Enqueue(), func(store.Answer, error) {})
			reply(fakes, granted(sent), granted(sent), failed(errPermanent))
			s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: time.Second}.Renew(), func(store.Renewal, error) {})
			fakes[2].renewals[0].answer(store.Renewal{}, nil)
			if got := fakes[2].brief; !slices.Equal(got, []bool{c.first, c.next}) {
				t.Errorf("brief: %v", got)
			}
		})
	}
}

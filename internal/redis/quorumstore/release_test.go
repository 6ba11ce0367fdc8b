package quorumstore

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestReleaseSucceedsIfMajorityIsFree(t *testing.T) {
	t.Parallel()
	type answer struct {
		status store.ReleaseStatus
		err    error
	}
	freed, handed, lost, unsure := answer{status: store.Freed}, answer{status: store.Handed}, answer{status: store.NotHeld}, answer{status: store.Unsure}
	fault, permanent := answer{err: errTemporary}, answer{err: errPermanent}
	for name, c := range map[string]struct {
		answers []answer // the last one decides
		want    store.ReleaseStatus
		fault   bool
	}{
		"three are free":                 {answers: []answer{freed, freed, freed}, want: store.Freed},
		"a waiter is queued":             {answers: []answer{freed, handed, lost, freed}, want: store.Handed},
		"three did not have it":          {answers: []answer{lost, freed, lost, lost}, want: store.NotHeld},
		"all are unsure":                 {answers: []answer{unsure, unsure, lost, unsure, lost}, want: store.Unsure},
		"three failed":                   {answers: []answer{freed, fault, fault, fault, freed}, fault: true},
		"three failed, two had lost it":  {answers: []answer{lost, fault, fault, lost, fault}, fault: true},
		"two are free, two never had it": {answers: []answer{freed, lost, freed, permanent, lost}, want: store.Freed},
		"one failed":                     {answers: []answer{fault, freed, freed, freed}, want: store.Freed},
		"one failed permanently":         {answers: []answer{permanent, freed, freed, freed}, want: store.Freed},
		"two have not replied":           {answers: []answer{freed, freed, freed}, want: store.Freed},
		"the last reply hands it over":   {answers: []answer{freed, freed, handed}, want: store.Handed},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := lease(t)
			var got outcome[store.ReleaseResult]
			s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), got.take)
			for i, a := range c.answers {
				if got.times != 0 {
					t.Fatal("decided too early")
				}
				fakes[i].withdrawals[0].answer(store.ReleaseResult{Status: a.status}, a.err)
			}
			if got.times != 1 || (got.err != nil) != c.fault || (!c.fault && got.answer.Status != c.want) {
				t.Errorf("done was called %d times: %v, %v", got.times, got.answer.Status, got.err)
			}
			for _, f := range fakes[len(c.answers):] {
				f.withdrawals[0].answer(store.ReleaseResult{Status: store.NotHeld}, nil)
			}
			for i, w := range s.withdrawals {
				voted := i < 3 && i < len(c.answers)
				if _, retries := w.pending[ballotID{"k", "ballot"}]; retries != (voted && errors.Is(c.answers[i].err, errTemporary)) {
					t.Errorf("server %d: withdrawal retried: %v", i, retries)
				}
			}
			if len(s.ballots) != 0 {
				t.Error("the ballot is not removed")
			}
		})
	}
}

// Once a majority does not have the lease any more, the release waits only briefly for the
// other servers.
func TestReleaseDoesNotWaitForDeadServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := lease(t)
		results := make(chan store.ReleaseStatus, 2)
		s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), func(released store.ReleaseResult, err error) {
			if err != nil {
				t.Error(err)
			}
			results <- released.Status
		})
		for i, status := range []store.ReleaseStatus{store.Freed, store.Freed, store.NotHeld, store.NotHeld} {
			fakes[i].withdrawals[0].answer(store.ReleaseResult{Status: status}, nil)
		}
		if len(results) != 0 {
			t.Fatal("decided while the lease may have been lost")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if status := <-results; status != store.Freed {
			t.Errorf("got %v", status)
		}
		fakes[4].withdrawals[0].answer(store.ReleaseResult{}, errTemporary)
		if len(results) != 0 {
			t.Error("done was called twice")
		}
	})
}

// If a release fails on a server, it is retried there until the vote expires, also if
// the release has only the token, as for a lost lease. The waiter leaves the queue, and no
// token joins the queue.
func TestFailedReleaseIsRetriedUntilVoteExpires(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request storetest.AnyRequest
		renewed []time.Duration // the TTLs of its renewals
		maxTTL  time.Duration
	}{
		"only the token":            {maxTTL: request().TTL},
		"with a short TTL":          {request: storetest.AnyRequest{TTL: 1}, maxTTL: request().TTL},
		"with a long TTL":           {request: storetest.AnyRequest{TTL: time.Hour}, maxTTL: request().TTL},
		"after a longer renewal":    {renewed: []time.Duration{time.Minute, time.Second}, maxTTL: time.Minute},
		"with a token that rejoins": {request: storetest.AnyRequest{TTL: time.Second, Rejoin: "next"}, maxTTL: request().TTL},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := lease(t)
			r := c.request
			r.Key, r.Token = "k", "ballot"
			for _, ttl := range c.renewed {
				s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: ttl}.Renew(), func(store.Renewal, error) {})
			}
			s.Release(r.Release(), func(store.ReleaseResult, error) {})
			f := fakes[0]
			for n, begun := 0, time.Now(); time.Since(begun) < c.maxTTL; n++ {
				if len(f.allWithdrawals()) != n+1 {
					t.Fatalf("%d withdrawals after %v", len(f.allWithdrawals()), time.Since(begun))
				}
				f.allWithdrawals()[n].answer(store.ReleaseResult{}, errTemporary)
				time.Sleep(retryPause)
				synctest.Wait()
			}
			if s.withdrawals[0].count() != 0 {
				t.Error("the withdrawal is retried after the vote expired")
			}
			for _, w := range f.allWithdrawals()[1:] {
				if w.request.Waiter != "waiter" || w.request.Rejoin != "" || w.request.Token != "ballot" {
					t.Fatalf("withdrawn by %+v", w.request)
				}
			}
		})
	}
}

// A forged hint makes the engine release the token of a ballot from another key. The ballot
// continues: votes that arrive later are kept, a renewal asks for missing votes, and the
// release of the ballot removes the waiter from the queues.
func TestReleaseFromAnotherKeyKeepsBallot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		var got outcome[store.Answer]
		s.Enqueue(request().Enqueue(), got.take)
		var released outcome[store.ReleaseResult]
		s.Release(storetest.AnyRequest{Key: "another key", Token: "ballot"}.Release(), released.take)
		for _, f := range fakes {
			if r := f.allWithdrawals()[0].request; r.Key != "another key" || r.Waiter != "" {
				t.Errorf("withdrawn: %+v", r)
			}
			f.allWithdrawals()[0].answer(store.ReleaseResult{}, errTemporary)
		}
		reply(fakes, granted(sent), granted(sent), granted(sent))
		if counts := withdrawn(fakes); !got.answer.Granted || !slices.Equal(counts, []int{1, 1, 1}) {
			t.Fatalf("granted: %v, withdrawn %v", got.answer.Granted, counts)
		}
		s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: time.Second}.Renew(), func(store.Renewal, error) {})
		fakes[0].renewals[0].answer(store.Renewal{}, nil)
		if n := len(fakes[0].votes); n != 2 {
			t.Errorf("the renewal asked for %d votes, want one more", n-1)
		}
		s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), func(store.ReleaseResult, error) {})
		for i, f := range fakes {
			if r := f.allWithdrawals()[1].request; r.Key != "k" || r.Waiter != "waiter" {
				t.Errorf("server %d received %+v", i, r)
			}
		}
	})
}

// The same token is withdrawn from two keys.
func TestVotesOfTwoKeysAreWithdrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := failWithdrawals(t, "a")
		f := fakes[0]
		other := request()
		other.Key, other.Token = "another key", "a"
		s.withdrawals[0].retryLater(withdrawalOf(other), time.Minute)
		time.Sleep(retryPause)
		synctest.Wait()
		f.allWithdrawals()[1].answer(store.ReleaseResult{}, nil)
		keys := map[string]bool{}
		for _, w := range f.allWithdrawals()[1:] {
			keys[w.request.Key] = true
			if len(f.allWithdrawals()) == 3 && w.request.Key != f.allWithdrawals()[1].request.Key {
				w.answer(store.ReleaseResult{}, nil)
			}
		}
		if !keys["k"] || !keys["another key"] {
			t.Errorf("withdrawn from %v", keys)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The waiter of the lease leaves the queues, and each server notifies its next waiter. A token
// without a ballot is released, too.
func TestReleaseGoesToAllServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := lease(t)
		s.Release(storetest.AnyRequest{Key: "k", Token: "ballot", Rejoin: "next"}.Release(), func(store.ReleaseResult, error) {})
		s.Release(storetest.AnyRequest{Key: "k", Token: "unknown"}.Release(), func(store.ReleaseResult, error) {})
		for i, f := range fakes {
			first, second := f.withdrawals[0].request, f.withdrawals[1].request
			if first.Waiter != "waiter" || first.Rejoin != "next" || !f.woken[0] {
				t.Errorf("server %d received %+v", i, first)
			}
			if second.Waiter != "" || second.Token != "unknown" || !f.woken[1] {
				t.Errorf("server %d received %+v", i, second)
			}
		}
	})
}

// The wait for the remaining servers begins when a majority is free, and not before.
func TestReleaseWaitsOnceMajorityIsFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := lease(t)
		results := make(chan store.ReleaseStatus, 2)
		s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), func(released store.ReleaseResult, _ error) {
			results <- released.Status
		})
		fakes[0].withdrawals[0].answer(store.ReleaseResult{Status: store.Freed}, nil)
		time.Sleep(10 * minStragglerWait)
		synctest.Wait()
		for _, f := range fakes[1:3] {
			f.withdrawals[0].answer(store.ReleaseResult{Status: store.NotHeld}, nil)
		}
		if len(results) != 0 {
			t.Error("decided without a wait for the remaining servers")
		}
		if err := s.Close(t.Context()); err != nil || len(results) != 1 {
			t.Errorf("%v, done was called %d times", err, len(results))
		}
	})
}

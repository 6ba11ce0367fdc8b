package quorumstore

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// count returns how many votes wait for a retry of their withdrawal.
func (w *withdrawals) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending)
}

// loseBallots lets each token lose a ballot on a Store of three servers. first is the vote of
// the first server.
func loseBallots(s *Store, fakes []*fake, first vote, tokens ...string) {
	for _, token := range tokens {
		r := request()
		r.Token = token
		s.Enqueue(r.Enqueue(), func(store.Answer, error) {})
		for i, v := range []vote{first, refused("h", 0), refused("h", 0)} {
			fakes[i].votes[len(fakes[i].votes)-1].answer(v.answer, v.err)
		}
	}
}

// failWithdrawals returns a Store of three servers. Each token has lost a ballot for which the
// first server has voted, and that server has failed to withdraw these votes.
func failWithdrawals(t *testing.T, tokens ...string) (*Store, []*fake) {
	t.Helper()
	s, fakes := newStore(3)
	loseBallots(s, fakes, granted(sent), tokens...)
	for _, w := range fakes[0].allWithdrawals() {
		w.answer(store.ReleaseResult{}, errTemporary)
	}
	return s, fakes
}

// A vote without a reply is not withdrawn at once while the withdrawals of the server fail, but
// with the next retry. Otherwise a server that replies too late would get more withdrawals the
// longer that lasts.
func TestUnknownVotesAreWithdrawnWithRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := failWithdrawals(t, "a")
		f := fakes[0]
		wantTokens := func(want ...string) {
			t.Helper()
			var got []string
			for _, w := range f.allWithdrawals() {
				got = append(got, w.request.Token)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("withdrawals of %v, want %v", got, want)
			}
		}
		unknown := failed(errTemporary)
		loseBallots(s, fakes, unknown, "b", "c")
		wantTokens("a")
		loseBallots(s, fakes, granted(sent), "d") // its client may retry at once
		wantTokens("a", "d")
		time.Sleep(retryPause)
		synctest.Wait()
		loseBallots(s, fakes, unknown, "e") // during the retry
		f.allWithdrawals()[2].answer(store.ReleaseResult{Status: store.Freed}, nil)
		wantTokens("a", "a", "b", "c", "d", "e")
		loseBallots(s, fakes, unknown, "f")
		wantTokens("a", "a", "b", "c", "d", "e", "f")
	})
}

// A vote that is known is withdrawn at once, whatever fails, and however late it is.
func TestKnownVoteIsWithdrawnAtOnce(t *testing.T) {
	t.Parallel()
	no, yes := refused("h", 0).answer, granted(sent).answer
	for name, vote := range map[string]func(fakes []*fake){
		"after its ballot was lost": func(fakes []*fake) {
			fakes[1].votes[1].answer(no, nil)
			fakes[2].votes[1].answer(no, nil)
			fakes[0].votes[1].answer(yes, nil)
		},
		"after half of the bound": func(fakes []*fake) {
			fakes[0].votes[1].answer(yes, nil)
			time.Sleep(request().Bound / 2)
			fakes[1].votes[1].answer(no, nil)
			fakes[2].votes[1].answer(no, nil)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := failWithdrawals(t, "a")
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			vote(fakes)
			if all := fakes[0].allWithdrawals(); len(all) != 2 || all[1].request.Token != request().Token {
				t.Errorf("%d withdrawals", len(all))
			}
			if got.times != 1 {
				t.Errorf("done was called %d times", got.times)
			}
		})
	}
}

// One withdrawal is retried at a time until the server replies, and then all others.
func TestFailedWithdrawalsAreRetriedUntilServerReplies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := failWithdrawals(t, "a", "b", "c")
		f := fakes[0]
		time.Sleep(retryPause)
		synctest.Wait()
		if len(f.allWithdrawals()) != 4 {
			t.Fatalf("%d withdrawals", len(f.allWithdrawals()))
		}
		if got := f.allWithdrawals()[3].request.Bound; got != request().Bound { // the client waited only for half
			t.Errorf("a retry may take %v", got)
		}
		if f.woken[0] || !f.woken[3] { // by then a client may wait for the vote
			t.Errorf("the server notifies a waiter: %v", f.woken)
		}
		f.allWithdrawals()[3].answer(store.ReleaseResult{}, errTemporary)
		time.Sleep(retryPause)
		synctest.Wait()
		f.allWithdrawals()[4].answer(store.ReleaseResult{Status: store.Freed}, nil)
		tokens := map[string]bool{}
		for _, w := range f.allWithdrawals()[4:] {
			tokens[w.request.Token] = true
		}
		if len(f.allWithdrawals()) != 7 || len(tokens) != 3 {
			t.Errorf("%d withdrawals, of %v", len(f.allWithdrawals()), tokens)
		}
		f.allWithdrawals()[5].answer(store.ReleaseResult{}, errTemporary)
		f.allWithdrawals()[6].answer(store.ReleaseResult{}, nil)
		time.Sleep(retryPause)
		synctest.Wait()
		if len(f.allWithdrawals()) != 8 || f.allWithdrawals()[7].request.Token != f.allWithdrawals()[5].request.Token {
			t.Error("the withdrawal that failed is not retried")
		}
		f.allWithdrawals()[7].answer(store.ReleaseResult{}, errPermanent) // a permanent failure is not retried
		if s.withdrawals[0].count() != 0 {
			t.Error("a vote is left")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A server that replied neither to the ballot nor to the release may have the waiter in its
// queue. The retried withdrawal removes the waiter from the queue.
func TestRetriedWithdrawalRemovesWaiterFromQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		s.Enqueue(request().Enqueue(), func(store.Answer, error) {})
		reply(fakes, granted(sent), granted(sent))
		s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), func(store.ReleaseResult, error) {})
		f := fakes[2]
		f.allWithdrawals()[0].answer(store.ReleaseResult{}, errTemporary)
		f.votes[0].answer(store.Answer{}, errTemporary)
		time.Sleep(retryPause)
		synctest.Wait()
		if all := f.allWithdrawals(); len(all) != 2 || all[1].request.Waiter != "waiter" {
			t.Errorf("%d withdrawals, the last by %+v", len(all), all[len(all)-1].request)
		}
	})
}

// A vote is added again while it is withdrawn, because the server may have voted after the
// withdrawal, or because its waiter has to leave the queue, too. It is withdrawn again.
func TestVoteAddedDuringItsRetryIsWithdrawnAgain(t *testing.T) {
	t.Parallel()
	for name, waiter := range map[string]string{"the same": "waiter", "with its waiter": ""} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(3)
			first, f := request(), fakes[0]
			first.Waiter = waiter
			s.withdrawals[0].retryLater(withdrawalOf(first), time.Minute)
			time.Sleep(retryPause)
			synctest.Wait()
			s.withdrawals[0].retryLater(withdrawalOf(request()), time.Minute)
			f.allWithdrawals()[0].answer(store.ReleaseResult{}, nil)
			if all := f.allWithdrawals(); len(all) != 2 || all[1].request.Token != first.Token || all[1].request.Waiter != "waiter" {
				t.Errorf("%d withdrawals", len(all))
			}
		})
	}
}

// A withdrawal that fails again does not extend the time of its retries.
func TestWithdrawalIsRetriedUntilVoteExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		one, other := request(), request()
		other.Token = "other"
		f := fakes[0]
		s.withdrawals[0].retryLater(withdrawalOf(one), 10*retryPause)
		s.withdrawals[0].retryLater(withdrawalOf(other), 10*retryPause)
		for begun := time.Now(); time.Since(begun) <= 10*retryPause; {
			time.Sleep(retryPause)
			synctest.Wait()
			if n := len(f.allWithdrawals()); s.withdrawals[0].count() == 2 {
				f.allWithdrawals()[n-1].answer(store.ReleaseResult{}, nil)
				f.allWithdrawals()[n].answer(store.ReleaseResult{}, errTemporary)
			} else {
				f.allWithdrawals()[n-1].answer(store.ReleaseResult{}, errTemporary)
			}
		}
		synctest.Wait()
		if s.withdrawals[0].count() != 0 {
			t.Error("the withdrawal is retried after the vote expired")
		}
	})
}

func TestCloseStopsRetriesOfWithdrawals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := failWithdrawals(t, "a")
		f := fakes[0]
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		s.withdrawals[0].retryLater(withdrawalOf(request()), time.Minute)
		time.Sleep(10 * retryPause)
		if len(f.allWithdrawals()) != 1 || s.withdrawals[0].count() != 0 {
			t.Errorf("%d withdrawals", len(f.allWithdrawals()))
		}
	})
}

// A server in quarantine receives no request. done is called only after the method has
// returned.
func TestGateRefusesRequestsToServerInQuarantine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		for i := range fakes {
			_ = s.membership.admitUptime(i, 0, time.Now())
		}
		results := make(chan error, 3)
		s.Enqueue(request().Enqueue(), func(_ store.Answer, err error) { results <- err })
		s.Renew(request().Renew(), func(_ store.Renewal, err error) { results <- err })
		s.Release(request().Release(), func(_ store.ReleaseResult, err error) { results <- err })
		for range 3 {
			if !isTemporary(<-results) {
				t.Error("no temporary fault")
			}
		}
		for _, f := range fakes {
			if len(f.votes)+len(f.renewals)+len(f.allWithdrawals()) != 0 {
				t.Error("a server in quarantine received a request")
			}
		}
		time.Sleep(maxQuarantineCheck)
		s.Enqueue(request().Enqueue(), func(store.Answer, error) {})
		for _, f := range fakes {
			if len(f.votes) != 1 {
				t.Error("the server received no request after the quarantine")
			}
		}
	})
}

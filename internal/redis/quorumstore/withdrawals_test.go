package quorumstore

import (
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

// loseBallots lets each token lose a ballot for which the first server has voted, on a Store of
// three servers. It returns how often done was called.
func loseBallots(s *Store, fakes []*fake, tokens ...string) (done *int) {
	done = new(int)
	for _, token := range tokens {
		r := request()
		r.Token = token
		s.Enqueue(r.Enqueue(), func(store.Answer, error) { *done++ })
		for i, v := range []vote{granted(sent), refused("h", 0), refused("h", 0)} {
			fakes[i].votes[len(fakes[i].votes)-1].answer(v.answer, v.err)
		}
	}
	return done
}

// failWithdrawals returns a Store of three servers. Each token has lost a ballot for which the
// first server has voted, and that server has failed to withdraw these votes.
func failWithdrawals(t *testing.T, tokens ...string) (*Store, []*fake) {
	t.Helper()
	s, fakes := newStore(3)
	done := loseBallots(s, fakes, tokens...)
	for _, w := range fakes[0].allWithdrawals() {
		w.answer(store.ReleaseResult{}, errTemporary)
	}
	if *done != len(tokens) {
		t.Fatalf("done was called %d times", *done)
	}
	return s, fakes
}

// Votes that are to be withdrawn while the withdrawals of a server fail wait for the retry.
// Otherwise a server that replies late would get more withdrawals the longer that lasts.
func TestWithdrawalsWaitWhileServerFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := failWithdrawals(t, "a")
		f := fakes[0]
		if done := loseBallots(s, fakes, "b", "c"); *done != 2 {
			t.Errorf("done was called %d times", *done)
		}
		if len(f.allWithdrawals()) != 1 {
			t.Errorf("%d withdrawals before the retry", len(f.allWithdrawals()))
		}
		time.Sleep(retryPause)
		synctest.Wait()
		if len(f.allWithdrawals()) != 2 {
			t.Fatalf("%d withdrawals", len(f.allWithdrawals()))
		}
		loseBallots(s, fakes, "d") // during the retry
		f.allWithdrawals()[1].answer(store.ReleaseResult{Status: store.Freed}, nil)
		tokens := map[string]bool{}
		for _, w := range f.allWithdrawals()[1:] {
			tokens[w.request.Token] = true
		}
		if len(f.allWithdrawals()) != 5 || len(tokens) != 4 {
			t.Errorf("%d withdrawals, of %v", len(f.allWithdrawals()), tokens)
		}
		loseBallots(s, fakes, "e")
		if all := f.allWithdrawals(); len(all) != 6 || all[5].request.Token != "e" {
			t.Errorf("%d withdrawals after the server has replied", len(all))
		}
	})
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

func TestExpiredVoteIsNotWithdrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := failWithdrawals(t, "a")
		f := fakes[0]
		for n := 1; s.withdrawals[0].count() > 0; n++ {
			time.Sleep(retryPause)
			synctest.Wait()
			if len(f.allWithdrawals()) > n {
				f.allWithdrawals()[n].answer(store.ReleaseResult{}, errTemporary)
			}
		}
		if most := int(request().TTL / retryPause); len(f.allWithdrawals()) > 1+most {
			t.Errorf("%d withdrawals", len(f.allWithdrawals()))
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

// While a vote is withdrawn without its waiter, the same vote is added with its waiter. It is
// withdrawn again, with the waiter.
func TestWithdrawalAddedDuringRetryIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		without, with := request(), request()
		without.Waiter = ""
		f := fakes[0]
		s.withdrawals[0].retryLater(withdrawalOf(without), time.Minute)
		time.Sleep(retryPause)
		synctest.Wait()
		s.withdrawals[0].retryLater(withdrawalOf(with), time.Minute)
		f.allWithdrawals()[0].answer(store.ReleaseResult{}, nil)
		if all := f.allWithdrawals(); len(all) != 2 || all[1].request.Waiter != "waiter" {
			t.Errorf("%d withdrawals", len(all))
		}
	})
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

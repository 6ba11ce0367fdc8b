package quorumstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// count returns how many votes are to be taken back.
func (d *debts) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.owed)
}

// owing makes the first of three servers fail to take back so many votes.
func owing(t *testing.T, tokens ...string) (*Store, *fake) {
	t.Helper()
	s, fakes := newStore(3)
	for n, token := range tokens {
		r := request()
		r.Token = token
		var got outcome[store.Answer]
		s.Enqueue(r.Enqueue(), got.take)
		for i, v := range []vote{granted(sent), refused("h", 0), refused("h", 0)} {
			fakes[i].votes[n].answer(v.answer, v.err)
		}
		fakes[0].taken()[n].answer(store.ReleaseResult{}, errPasses)
		if got.times != 1 {
			t.Fatalf("told %d times", got.times)
		}
	}
	return s, fakes[0]
}

// A vote that could not be taken back is taken back later: one at a time, until the
// server answers, and then all of them.
func TestAVoteIsTakenBackOnceTheServerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := owing(t, "a", "b", "c")
		time.Sleep(debtPause)
		synctest.Wait()
		if len(f.taken()) != 4 {
			t.Fatalf("%d withdrawals", len(f.taken()))
		}
		f.taken()[3].answer(store.ReleaseResult{}, errPasses)
		time.Sleep(debtPause)
		synctest.Wait()
		f.taken()[4].answer(store.ReleaseResult{Status: store.Freed}, nil)
		tokens := map[string]bool{}
		for _, w := range f.taken()[4:] {
			tokens[w.request.Token] = true
		}
		if len(f.taken()) != 7 || len(tokens) != 3 {
			t.Errorf("%d withdrawals, of %v", len(f.taken()), tokens)
		}
		f.taken()[5].answer(store.ReleaseResult{}, errPasses)
		f.taken()[6].answer(store.ReleaseResult{}, nil)
		time.Sleep(debtPause)
		synctest.Wait()
		if len(f.taken()) != 8 || f.taken()[7].request.Token != f.taken()[5].request.Token {
			t.Error("one that failed is forgotten")
		}
		f.taken()[7].answer(store.ReleaseResult{}, errStays) // there is nothing to be done
		if s.debts[0].count() != 0 {
			t.Error("one is remembered")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A vote that has run out is not taken back any more.
func TestAVoteThatHasRunOutIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := owing(t, "a")
		for n := 1; s.debts[0].count() > 0; n++ {
			time.Sleep(debtPause)
			synctest.Wait()
			if len(f.taken()) > n {
				f.taken()[n].answer(store.ReleaseResult{}, errPasses)
			}
		}
		if most := int(request().TTL / debtPause); len(f.taken()) > 1+most {
			t.Errorf("%d withdrawals", len(f.taken()))
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A server that answered neither to the question nor to the release may have the waiter
// in its line, from where it leaves with the vote.
func TestAWaiterLeavesTheLineOfAServerThatNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		s.Enqueue(request().Enqueue(), func(store.Answer, error) {})
		give(fakes, granted(sent), granted(sent))
		s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), func(store.ReleaseResult, error) {})
		f := fakes[2]
		f.taken()[0].answer(store.ReleaseResult{}, errPasses)
		f.votes[0].answer(store.Answer{}, errPasses)
		f.taken()[1].answer(store.ReleaseResult{}, errPasses)
		time.Sleep(debtPause)
		synctest.Wait()
		if taken := f.taken(); len(taken) != 3 || taken[2].request.Waiter != "waiter" {
			t.Errorf("%d withdrawals, the last by %+v", len(taken), taken[len(taken)-1].request)
		}
	})
}

// What is owed with more words, while less is taken back, is taken back with these.
func TestWhatIsOwedMeanwhileIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		less, more := request(), request()
		less.Waiter = ""
		f := fakes[0]
		s.debts[0].owe(withdrawalOf(less), time.Minute)
		time.Sleep(debtPause)
		synctest.Wait()
		s.debts[0].owe(withdrawalOf(more), time.Minute)
		f.taken()[0].answer(store.ReleaseResult{}, nil)
		if taken := f.taken(); len(taken) != 2 || taken[1].request.Waiter != "waiter" {
			t.Errorf("%d withdrawals", len(taken))
		}
	})
}

// A vote that fails again lives no longer for it.
func TestAVoteIsOwedForItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		one, other := request(), request()
		other.Token = "other"
		f := fakes[0]
		s.debts[0].owe(withdrawalOf(one), 10*debtPause)
		s.debts[0].owe(withdrawalOf(other), 10*debtPause)
		for begun := time.Now(); time.Since(begun) <= 10*debtPause; {
			time.Sleep(debtPause)
			synctest.Wait()
			if n := len(f.taken()); s.debts[0].count() == 2 {
				f.taken()[n-1].answer(store.ReleaseResult{}, nil)
				f.taken()[n].answer(store.ReleaseResult{}, errPasses)
			} else {
				f.taken()[n-1].answer(store.ReleaseResult{}, errPasses)
			}
		}
		synctest.Wait()
		if s.debts[0].count() != 0 {
			t.Error("it is owed for longer than it lives")
		}
	})
}

// A Store that is closed tries nothing any more.
func TestCloseForgetsVotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := owing(t, "a")
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		s.debts[0].owe(withdrawalOf(request()), time.Minute)
		time.Sleep(10 * debtPause)
		if len(f.taken()) != 1 || s.debts[0].count() != 0 {
			t.Errorf("%d withdrawals", len(f.taken()))
		}
	})
}

// A server that is known to be young is not asked, and nobody is told before he has
// asked.
func TestAGateKeepsQuestionsFromAYoungServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		for i := range fakes {
			_ = s.muster.grow(i, 0, time.Now())
		}
		told := make(chan error, 3)
		s.Enqueue(request().Enqueue(), func(_ store.Answer, err error) { told <- err })
		s.Renew(request().Renew(), func(_ store.Renewal, err error) { told <- err })
		s.Release(request().Release(), func(_ store.ReleaseResult, err error) { told <- err })
		for range 3 {
			if !retries(<-told) {
				t.Error("no fault that passes")
			}
		}
		for _, f := range fakes {
			if len(f.votes)+len(f.renewals)+len(f.taken()) != 0 {
				t.Error("asked")
			}
		}
		time.Sleep(longestYouth)
		s.Enqueue(request().Enqueue(), func(store.Answer, error) {})
		for _, f := range fakes {
			if len(f.votes) != 1 {
				t.Error("not asked")
			}
		}
	})
}

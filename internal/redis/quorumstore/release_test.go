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

func TestAReleaseCountsWhereAMajorityIsFree(t *testing.T) {
	type answer struct {
		end store.ReleaseStatus
		err error
	}
	freed, handed, not, unsure := answer{end: store.Freed}, answer{end: store.Handed}, answer{end: store.NotHeld}, answer{end: store.Unsure}
	gone, mute := answer{err: errPasses}, answer{err: errStays}
	for name, c := range map[string]struct {
		answers []answer // the last one decides
		want    store.ReleaseStatus
		fault   bool
	}{
		"three are free":            {answers: []answer{freed, freed, freed}, want: store.Freed},
		"somebody waits":            {answers: []answer{freed, handed, not, freed}, want: store.Handed},
		"three did not have it":     {answers: []answer{not, freed, not, not}, want: store.NotHeld},
		"nobody knows":              {answers: []answer{unsure, unsure, not, unsure, not}, want: store.Unsure},
		"too many are gone":         {answers: []answer{freed, gone, gone, gone, freed}, fault: true},
		"too many had forgotten it": {answers: []answer{not, gone, gone, not, gone}, fault: true},
		"two are free, two never":   {answers: []answer{freed, not, freed, mute, not}, want: store.Freed},
		"one has it still":          {answers: []answer{gone, freed, freed, freed}, want: store.Freed},
		"one will always":           {answers: []answer{mute, freed, freed, freed}, want: store.Freed},
		"one never had it":          {answers: []answer{freed, freed, freed}, want: store.Freed},
		"the last to answer has it": {answers: []answer{freed, freed, handed}, want: store.Handed},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := lease(t)
			var got outcome[store.ReleaseResult]
			s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), got.take)
			for i, a := range c.answers {
				if got.times != 0 {
					t.Fatal("decided too early")
				}
				fakes[i].withdrawals[0].answer(store.ReleaseResult{Status: a.end}, a.err)
			}
			if got.times != 1 || (got.err != nil) != c.fault || (!c.fault && got.answer.Status != c.want) {
				t.Errorf("told %d times: %v, %v", got.times, got.answer.Status, got.err)
			}
			for _, f := range fakes[len(c.answers):] {
				f.withdrawals[0].answer(store.ReleaseResult{Status: store.NotHeld}, nil)
			}
			for i, d := range s.debts {
				voted := i < 3 && i < len(c.answers)
				if _, owed := d.owed[ballotID{"k", "ballot"}]; owed != (voted && errors.Is(c.answers[i].err, errPasses)) {
					t.Errorf("server %d is told once more: %v", i, owed)
				}
			}
			if len(s.ballots) != 0 {
				t.Error("the ballot is remembered")
			}
		})
	}
}

// Once a majority does not have it any more, servers that are silent are not waited
// for long.
func TestAReleaseDoesNotWaitForTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := lease(t)
		told := make(chan store.ReleaseStatus, 2)
		s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), func(released store.ReleaseResult, err error) {
			if err != nil {
				t.Error(err)
			}
			told <- released.Status
		})
		for i, end := range []store.ReleaseStatus{store.Freed, store.Freed, store.NotHeld, store.NotHeld} {
			fakes[i].withdrawals[0].answer(store.ReleaseResult{Status: end}, nil)
		}
		if len(told) != 0 {
			t.Fatal("decided while it may have been lost")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if end := <-told; end != store.Freed {
			t.Errorf("told %v", end)
		}
		fakes[4].withdrawals[0].answer(store.ReleaseResult{}, errPasses)
		if len(told) != 0 {
			t.Error("told twice")
		}
	})
}

// A release that says nothing of the lease but its token, as of one that was lost, is
// made good as well where it was not heard: for as long as the vote may live. The waiter
// leaves that line, and nobody joins it so late.
func TestAVoteThatIsNotReleasedIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		request storetest.AnyRequest
		renewed []time.Duration // the TTLs of its renewals
		life    time.Duration
	}{
		"of which the token is known": {life: request().TTL},
		"whose TTL is short":          {request: storetest.AnyRequest{TTL: 1}, life: request().TTL},
		"whose TTL is long":           {request: storetest.AnyRequest{TTL: time.Hour}, life: request().TTL},
		"of one that was extended":    {renewed: []time.Duration{time.Minute, time.Second}, life: time.Minute},
		"after which another waits":   {request: storetest.AnyRequest{TTL: time.Second, Rejoin: "next"}, life: request().TTL},
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
			for n, begun := 0, time.Now(); time.Since(begun) < c.life; n++ {
				if len(f.taken()) != n+1 {
					t.Fatalf("%d withdrawals after %v", len(f.taken()), time.Since(begun))
				}
				f.taken()[n].answer(store.ReleaseResult{}, errPasses)
				time.Sleep(debtPause)
				synctest.Wait()
			}
			if s.debts[0].count() != 0 {
				t.Error("it is remembered for longer than it lives")
			}
			for _, w := range f.taken()[1:] {
				if w.request.Waiter != "waiter" || w.request.Rejoin != "" || w.request.Token != "ballot" {
					t.Fatalf("taken back by %+v", w.request)
				}
			}
		})
	}
}

// A forged hint makes the engine release the token of a ballot from another key. The ballot
// goes on: votes that come now are kept, a renewal asks for those that are missing, and
// its own release takes the waiter along.
//
//faults:row 51
func TestReleaseFromAnotherKeyKeepsBallot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		var got outcome[store.Answer]
		s.Enqueue(request().Enqueue(), got.take)
		var freed outcome[store.ReleaseResult]
		s.Release(storetest.AnyRequest{Key: "another key", Token: "ballot"}.Release(), freed.take)
		for _, f := range fakes {
			if r := f.taken()[0].request; r.Key != "another key" || r.Waiter != "" {
				t.Errorf("withdrawn: %+v", r)
			}
			f.taken()[0].answer(store.ReleaseResult{}, errPasses)
		}
		give(fakes, granted(sent), granted(sent), granted(sent))
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
			if r := f.taken()[1].request; r.Key != "k" || r.Waiter != "waiter" {
				t.Errorf("server %d was told %+v", i, r)
			}
		}
	})
}

// The same token is to be taken back from two keys.
func TestVotesOfTwoKeysAreTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := owing(t, "a")
		other := request()
		other.Key, other.Token = "another key", "a"
		s.debts[0].owe(withdrawalOf(other), time.Minute)
		time.Sleep(debtPause)
		synctest.Wait()
		f.taken()[1].answer(store.ReleaseResult{}, nil)
		keys := map[string]bool{}
		for _, w := range f.taken()[1:] {
			keys[w.request.Key] = true
			if len(f.taken()) == 3 && w.request.Key != f.taken()[1].request.Key {
				w.answer(store.ReleaseResult{}, nil)
			}
		}
		if !keys["k"] || !keys["another key"] {
			t.Errorf("taken back from %v", keys)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The waiter of the lease leaves the lines with it, and the first of the rest is
// woken. A token of which nothing is known is released as well.
//
//faults:row 7: a release
func TestAReleaseGoesToAllServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := lease(t)
		s.Release(storetest.AnyRequest{Key: "k", Token: "ballot", Rejoin: "next"}.Release(), func(store.ReleaseResult, error) {})
		s.Release(storetest.AnyRequest{Key: "k", Token: "unheard of"}.Release(), func(store.ReleaseResult, error) {})
		for i, f := range fakes {
			first, second := f.withdrawals[0].request, f.withdrawals[1].request
			if first.Waiter != "waiter" || first.Rejoin != "next" || !f.woken[0] {
				t.Errorf("server %d was told %+v", i, first)
			}
			if second.Waiter != "" || second.Token != "unheard of" || !f.woken[1] {
				t.Errorf("server %d was told %+v", i, second)
			}
		}
	})
}

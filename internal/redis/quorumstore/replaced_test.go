package quorumstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// An answer counts for nothing where another process was met behind the client since
// the question: that one may have answered it behind another client.
func TestAnAnswerOfAServerThatHasMovedDoesNotCount(t *testing.T) {
	bubble(t, "to a ballot", func(t *testing.T) {
		s, fakes := newStore(3)
		var got outcome[store.Answer]
		s.Enqueue(request().Enqueue(), got.take)
		fakes[0].votes[0].answer(granted(sent).answer, nil)
		_, _, _ = s.muster.connected(1, "another")
		fakes[1].votes[0].answer(granted(sent).answer, nil)
		if got.times != 0 {
			t.Fatal("it counted")
		}
		fakes[2].votes[0].answer(granted(sent).answer, nil)
		if !got.answer.Granted {
			t.Error("the others do not count")
		}
	})
	bubble(t, "to a renewal", func(t *testing.T) {
		s, fakes := lease(t)
		var got outcome[store.Renewal]
		s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: time.Second}.Renew(), got.take)
		_, _, _ = s.muster.connected(1, "another")
		for i, f := range fakes {
			f.renewals[0].answer(store.Renewal{Held: i < 3, Since: sent}, nil)
		}
		if got.times != 0 {
			t.Fatal("it counted")
		}
	})
}

// A vote that a renewal asks for counts neither, if it comes from another process than
// that of before the renewal, and is taken back with the lease. One that had moved
// before that counts: so a lease outlives servers that are restarted.
func TestAVoteThatIsGainedFromAServerThatHasMovedDoesNotCount(t *testing.T) {
	for name, during := range map[string]bool{"since the renewal began": true, "before it": false} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := lease(t)
			if !during {
				_, _, _ = s.muster.connected(3, "another")
			}
			var got outcome[store.Renewal]
			s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: time.Second}.Renew(), got.take)
			for i, f := range fakes[:4] {
				f.renewals[0].answer(store.Renewal{Held: i > 0 && i < 3, Since: sent}, nil)
			}
			fakes[4].renewals[0].answer(store.Renewal{}, errPasses)
			if during {
				_, _, _ = s.muster.connected(3, "another")
			}
			fakes[3].votes[1].answer(granted(sent).answer, nil)
			fakes[0].votes[1].answer(refused("h", 0).answer, nil)
			if got.times != 1 || got.answer.Held == during || (got.err != nil) != during {
				t.Errorf("told %d times: %+v, %v", got.times, got.answer, got.err)
			}
			if voted, _ := s.ballots[ballotID{"k", "ballot"}].end(); !voted[3] {
				t.Error("a vote stays behind")
			}
		})
	}
}

// Who does not answer from the beginning is waited for once.
func TestADeadServerIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		s.muster.places[2].run = ""
		for n := range 2 {
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			for _, f := range fakes[:2] {
				f.votes[n].answer(granted(sent).answer, nil)
			}
			if got.times != n {
				t.Errorf("question %d: told %d times", n, got.times)
			}
			fakes[2].votes[n].answer(store.Answer{}, errPasses)
			if got.times != 1 {
				t.Errorf("question %d: told %d times in the end", n, got.times)
			}
		}
	})
}

// A ballot is not lost either before all servers are known: it may be that two of them
// are the same, and that is why.
func TestNobodyIsRefusedALockBeforeAllServersAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		s.muster.places[2].run = ""
		var got outcome[store.Answer]
		s.Enqueue(request().Enqueue(), got.take)
		give(fakes, refused("h", 0), refused("h", 0))
		time.Sleep(2 * shortestHurry)
		synctest.Wait()
		if got.times != 0 {
			t.Fatal("told too early")
		}
		_, _, _ = s.muster.connected(2, "run 1")
		fakes[2].votes[0].answer(refused("h", 0).answer, nil)
		if got.times != 1 || got.err == nil {
			t.Errorf("told %d times: %v", got.times, got.err)
		}
	})
}

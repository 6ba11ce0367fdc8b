package quorumstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A reply does not count if the process behind the client was replaced after the request: the
// new process may have replied to the same request behind another client.
func TestReplyOfReplacedServerDoesNotCount(t *testing.T) {
	t.Parallel()
	bubble(t, "to a ballot", func(t *testing.T) {
		s, fakes := newStore(3)
		var got outcome[store.Answer]
		s.Enqueue(request().Enqueue(), got.take)
		fakes[0].votes[0].answer(granted(sent).answer, nil)
		_, _, _ = s.membership.connected(1, "another")
		fakes[1].votes[0].answer(granted(sent).answer, nil)
		if got.times != 0 {
			t.Fatal("the reply counts")
		}
		fakes[2].votes[0].answer(granted(sent).answer, nil)
		if !got.answer.Granted {
			t.Error("the other replies do not count")
		}
	})
	bubble(t, "to a renewal", func(t *testing.T) {
		s, fakes := lease(t)
		var got outcome[store.Renewal]
		s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: time.Second}.Renew(), got.take)
		_, _, _ = s.membership.connected(1, "another")
		for i, f := range fakes {
			f.renewals[0].answer(store.Renewal{Held: i < 3, Since: sent}, nil)
		}
		if got.times != 0 {
			t.Fatal("the reply counts")
		}
	})
}

// A vote that a renewal gains does not count if the process was replaced during the renewal. It
// is withdrawn with the lease. If the process was replaced before the renewal, its vote counts:
// so a lease survives restarts of servers.
func TestGainedVoteOfReplacedServerDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]bool{"replaced during the renewal": true, "replaced before the renewal": false} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := lease(t)
			if !during {
				_, _, _ = s.membership.connected(3, "another")
			}
			var got outcome[store.Renewal]
			s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: time.Second}.Renew(), got.take)
			for i, f := range fakes[:4] {
				f.renewals[0].answer(store.Renewal{Held: i > 0 && i < 3, Since: sent}, nil)
			}
			fakes[4].renewals[0].answer(store.Renewal{}, errTemporary)
			if during {
				_, _, _ = s.membership.connected(3, "another")
			}
			fakes[3].votes[1].answer(granted(sent).answer, nil)
			fakes[0].votes[1].answer(refused("h", 0).answer, nil)
			if got.times != 1 || got.answer.Held == during || (got.err != nil) != during {
				t.Errorf("done was called %d times: %+v, %v", got.times, got.answer, got.err)
			}
			if voted, _ := s.ballots[ballotID{"k", "ballot"}].endLease(); !voted[3] {
				t.Error("the vote is not withdrawn with the lease")
			}
		})
	}
}

// The second ballot does not wait for a server that failed in the first ballot.
func TestDeadServerDelaysOneBallot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		s.membership.members[2].run = ""
		for n := range 2 {
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			for _, f := range fakes[:2] {
				f.votes[n].answer(granted(sent).answer, nil)
			}
			if got.times != n {
				t.Errorf("ballot %d: done was called %d times", n, got.times)
			}
			fakes[2].votes[n].answer(store.Answer{}, errTemporary)
			if got.times != 1 {
				t.Errorf("ballot %d: done was called %d times in the end", n, got.times)
			}
		}
	})
}

// A refusal also waits until all servers are known: two clients that lead to the same server
// may be the reason of the refusal.
func TestLockIsNotRefusedBeforeAllServersAreKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		s.membership.members[2].run = ""
		var got outcome[store.Answer]
		s.Enqueue(request().Enqueue(), got.take)
		reply(fakes, refused("h", 0), refused("h", 0))
		time.Sleep(2 * minStragglerWait)
		synctest.Wait()
		if got.times != 0 {
			t.Fatal("decided too early")
		}
		_, _, _ = s.membership.connected(2, "run 1")
		fakes[2].votes[0].answer(refused("h", 0).answer, nil)
		if got.times != 1 || got.err == nil {
			t.Errorf("done was called %d times: %v", got.times, got.err)
		}
	})
}

package quorumstore

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Two of five servers do not reply, and the votes of the other three are split.
func TestBallotWithSplitVotesDoesNotWaitForDeadServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(5)
		var got outcome[store.Answer]
		begun := time.Now()
		s.Enqueue(request().Enqueue(), got.take)
		reply(fakes, granted(sent), refused("h", 0), refused("h", 0))
		if got.times != 0 {
			t.Fatal("the ballot did not wait for the other servers")
		}
		time.Sleep(minStragglerWait)
		synctest.Wait()
		if counts := withdrawn(fakes); !slices.Equal(counts, []int{1, 0, 0, 0, 0}) {
			t.Fatalf("withdrawn %v", counts)
		}
		fakes[0].withdrawals[0].answer(store.ReleaseResult{Status: store.Freed}, nil)
		if got.times != 1 || !got.answer.SplitVote || got.err != nil {
			t.Errorf("got %+v after %v", got, time.Since(begun))
		}
		// The other replies are late or missing: these servers may have voted.
		fakes[3].votes[0].answer(granted(sent).answer, nil)
		fakes[4].votes[0].answer(store.Answer{}, errTemporary)
		if counts := withdrawn(fakes); !slices.Equal(counts, []int{1, 0, 0, 1, 1}) {
			t.Errorf("withdrawn %v", counts)
		}
		if got.times != 1 {
			t.Errorf("done was called %d times", got.times)
		}
	})
}

// A vote that decides nothing does not end the limit of the wait: the fifth server is dead.
func TestBallotStaysBoundedAfterAnotherVote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(5)
		s.Enqueue(request().Enqueue(), func(store.Answer, error) {})
		reply(fakes, granted(sent), refused("h", 0), refused("h", 0))
		fakes[3].votes[0].answer(granted(sent).answer, nil)
		time.Sleep(minStragglerWait)
		synctest.Wait()
		if n := len(fakes[0].allWithdrawals()); n != 1 {
			t.Errorf("%d withdrawals: not given up", n)
		}
	})
}

// A ballot waits for servers that are a little slower than the majority. A ballot without a
// refusal waits for the missing votes even longer, because no majority has replied.
func TestBallotWaitsForSlowerServers(t *testing.T) {
	t.Parallel()
	for name, votes := range map[string][]vote{
		"two votes and a refusal": {granted(sent), granted(sent), refused("h", 0)},
		"two votes":               {granted(sent), granted(sent)},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(5)
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			time.Sleep(minStragglerWait) // the latency of the servers that reply
			reply(fakes, votes...)
			time.Sleep(stragglerFactor*minStragglerWait - 1)
			fakes[4].votes[0].answer(granted(sent).answer, nil)
			time.Sleep(time.Second)
			synctest.Wait()
			if got.times != 1 || !got.answer.Granted {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// distantLatency is the latency of a distant server.
const distantLatency = 80 * time.Millisecond

// One of two near servers has a vote for a client that died. The third server is distant. The
// first ballot is given up. The next ballots wait longer, because the latency is known.
func TestBallotIsGrantedByDistantServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		for n, want := range []bool{false, true, true} {
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			time.Sleep(time.Millisecond)
			fakes[0].votes[n].answer(granted(sent).answer, nil)
			fakes[1].votes[n].answer(refused("h", time.Minute).answer, nil)
			time.Sleep(distantLatency - time.Millisecond)
			synctest.Wait()
			fakes[2].votes[n].answer(granted(sent).answer, nil)
			for _, f := range fakes {
				for _, w := range f.allWithdrawals() {
					w.answer(store.ReleaseResult{Status: store.Freed}, nil)
				}
				f.withdrawals = nil
			}
			if got.times != 1 || got.answer.Granted != want || got.answer.SplitVote == want {
				t.Errorf("ballot %d: done was called %d times, %+v, %v", n, got.times, got.answer, got.err)
			}
		}
	})
}

// The wait for a server depends on its last latency. It is limited by the bound of the request,
// and is short if the server has failed since.
func TestWaitForServerDependsOnItsLatency(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		took  time.Duration // the latency of its last reply; 0 is none
		fails error         // its failure after that reply
		wait  time.Duration
	}{
		"without a reply":     {0, nil, minStragglerWait},
		"near":                {time.Millisecond, nil, minStragglerWait},
		"less near":           {distantLatency / 4, nil, stragglerFactor * distantLatency / 4},
		"distant":             {distantLatency, nil, request().Bound},
		"distant, and failed": {distantLatency, errTemporary, minStragglerWait},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(3)
			before := newBallot(s, voteOf(request()), func(store.Answer, error) {})
			before.ask(2, voteOf(request()), s.membership.generations(), func(vote) {})
			before.ask(2, voteOf(request()), s.membership.generations(), func(vote) {})
			if c.took > 0 {
				time.Sleep(c.took)
				fakes[2].votes[0].answer(refused("h", 0).answer, nil)
			}
			if c.fails != nil {
				fakes[2].votes[1].answer(store.Answer{}, c.fails)
			}
			s.Enqueue(request().Enqueue(), func(store.Answer, error) {})
			reply(fakes, granted(sent), refused("h", 0))
			time.Sleep(c.wait - 1)
			if n := len(fakes[0].allWithdrawals()); n != 0 {
				t.Error("given up too early")
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if n := len(fakes[0].allWithdrawals()); n != 1 {
				t.Error("not given up")
			}
		})
	}
}

// The wait for the remaining servers begins when a majority has replied, and not before.
func TestBallotIsBoundedOnceMajorityHasReplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(5)
		s.Enqueue(request().Enqueue(), func(store.Answer, error) {})
		fakes[0].votes[0].answer(granted(sent).answer, nil)
		const late = minStragglerWait - 1
		time.Sleep(late)
		fakes[1].votes[0].answer(refused("h", 0).answer, nil)
		fakes[2].votes[0].answer(refused("h", 0).answer, nil)
		time.Sleep(stragglerFactor*late - 1)
		synctest.Wait()
		if n := len(fakes[0].allWithdrawals()); n != 0 {
			t.Error("given up too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n := len(fakes[0].allWithdrawals()); n != 1 {
			t.Errorf("%d withdrawals: not given up", n)
		}
	})
}

// Close does not wait for the remaining servers of operations that are decided.
func TestCloseWaitsOnlyForUndecidedOperations(t *testing.T) {
	t.Parallel()
	const late = 2 * time.Second // how long the majority takes
	for name, decide := range map[string]func(t *testing.T){
		"ballot": func(t *testing.T) {
			s, fakes := newStore(5)
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			time.Sleep(late)
			reply(fakes, granted(sent), granted(sent), refused("h", 0))
			fakes[3].votes[0].answer(granted(sent).answer, nil)
			if got.times != 1 {
				t.Error("the ballot is not decided")
			}
			wantCloseAtOnce(t, s)
		},
		"release": func(t *testing.T) {
			s, fakes := lease(t)
			var got outcome[store.ReleaseResult]
			s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), got.take)
			time.Sleep(late)
			for i, status := range []store.ReleaseStatus{store.Freed, store.Freed, store.NotHeld, store.Freed} {
				fakes[i].withdrawals[0].answer(store.ReleaseResult{Status: status}, nil)
			}
			if got.times != 1 {
				t.Error("the release is not decided")
			}
			wantCloseAtOnce(t, s)
		},
	} {
		bubble(t, name, decide)
	}
}

// wantCloseAtOnce fails the test if Close waits.
func wantCloseAtOnce(t *testing.T, s *Store) {
	t.Helper()
	begun := time.Now()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 0 {
		t.Errorf("Close took %v", took)
	}
}

package quorumstore

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// Two servers of five do not answer, and the other three have split their votes.
func TestABallotThatOthersHaveVotesOfDoesNotWaitForTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(5)
		var got outcome[store.Answer]
		begun := time.Now()
		s.Enqueue(request().Enqueue(), got.take)
		give(fakes, granted(sent), refused("h", 0), refused("h", 0))
		if got.times != 0 {
			t.Fatal("the others were not waited for")
		}
		time.Sleep(shortestHurry)
		synctest.Wait()
		if counts := withdrawn(fakes); !slices.Equal(counts, []int{1, 0, 0, 0, 0}) {
			t.Fatalf("withdrawn %v", counts)
		}
		fakes[0].withdrawals[0].answer(store.ReleaseResult{Status: store.Freed}, nil)
		if got.times != 1 || !got.answer.SplitVote || got.err != nil {
			t.Errorf("got %+v after %v", got, time.Since(begun))
		}
		// Their answers come late, or never: they may have voted.
		fakes[3].votes[0].answer(granted(sent).answer, nil)
		fakes[4].votes[0].answer(store.Answer{}, errPasses)
		if counts := withdrawn(fakes); !slices.Equal(counts, []int{1, 0, 0, 1, 1}) {
			t.Errorf("withdrawn %v", counts)
		}
		if got.times != 1 {
			t.Errorf("told %d times", got.times)
		}
	})
}

// One that may still be granted by those who are slow, and is, is no loss; and one
// for which nobody but the dead are missing waits for them.
func TestABallotWaitsForThoseThatAreLittleSlower(t *testing.T) {
	for name, votes := range map[string][]vote{
		"two votes and a refusal": {granted(sent), granted(sent), refused("h", 0)},
		"two votes":               {granted(sent), granted(sent)},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(5)
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			time.Sleep(shortestHurry) // so long took those who answer
			give(fakes, votes...)
			time.Sleep(hurryFactor*shortestHurry - 1)
			fakes[4].votes[0].answer(granted(sent).answer, nil)
			time.Sleep(time.Second)
			synctest.Wait()
			if got.times != 1 || !got.answer.Granted {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// far is how long a server takes that is far from the others.
const far = 80 * time.Millisecond

// A vote of somebody who is dead lasts at one of two servers that are near. The third
// one is far, so the first ballot is given up, and then it is known how far.
func TestABallotIsGrantedByAServerThatIsFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		for n, want := range []bool{false, true, true} {
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			time.Sleep(time.Millisecond)
			fakes[0].votes[n].answer(granted(sent).answer, nil)
			fakes[1].votes[n].answer(refused("h", time.Minute).answer, nil)
			time.Sleep(far - time.Millisecond)
			synctest.Wait()
			fakes[2].votes[n].answer(granted(sent).answer, nil)
			for _, f := range fakes {
				for _, w := range f.taken() {
					w.answer(store.ReleaseResult{Status: store.Freed}, nil)
				}
				f.withdrawals = nil
			}
			if got.times != 1 || got.answer.Granted != want || got.answer.SplitVote == want {
				t.Errorf("ballot %d: told %d times, %+v, %v", n, got.times, got.answer, got.err)
			}
		}
	})
}

// A server that does not answer is waited for as many times as long as it took before,
// but no longer than a command takes, and only a little if it has failed since.
func TestABallotWaitsForWhoAnsweredBefore(t *testing.T) {
	for name, c := range map[string]struct {
		took  time.Duration // by its answer before; 0 is none
		fails error         // its answer after that
		wait  time.Duration
	}{
		"it was never heard":     {0, nil, shortestHurry},
		"it is near":             {time.Millisecond, nil, shortestHurry},
		"it is not so near":      {far / 4, nil, hurryFactor * far / 4},
		"it is far":              {far, nil, request().Bound},
		"it was far, and failed": {far, errPasses, shortestHurry},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(3)
			before := newBallot(s, voteOf(request()), func(store.Answer, error) {})
			before.ask(2, voteOf(request()), s.muster.moves(), func(vote) {})
			before.ask(2, voteOf(request()), s.muster.moves(), func(vote) {})
			if c.took > 0 {
				time.Sleep(c.took)
				fakes[2].votes[0].answer(refused("h", 0).answer, nil)
			}
			if c.fails != nil {
				fakes[2].votes[1].answer(store.Answer{}, c.fails)
			}
			s.Enqueue(request().Enqueue(), func(store.Answer, error) {})
			give(fakes, granted(sent), refused("h", 0))
			time.Sleep(c.wait - 1)
			if n := len(fakes[0].taken()); n != 0 {
				t.Error("given up too early")
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if n := len(fakes[0].taken()); n != 1 {
				t.Error("not given up")
			}
		})
	}
}

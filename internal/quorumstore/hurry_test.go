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
		s.Enqueue(request(), got.take)
		give(fakes, granted(sent), refused("h", 0), refused("h", 0))
		if got.times != 0 {
			t.Fatal("the others were not waited for")
		}
		time.Sleep(shortestHurry)
		synctest.Wait()
		if counts := withdrawn(fakes); !slices.Equal(counts, []int{1, 0, 0, 0, 0}) {
			t.Fatalf("withdrawn %v", counts)
		}
		fakes[0].withdrawals[0].answer(store.Released{End: store.Freed}, nil)
		if got.times != 1 || !got.answer.Split || got.err != nil {
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
			s.Enqueue(request(), got.take)
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

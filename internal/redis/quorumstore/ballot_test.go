package quorumstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Each row gives the answers of the first servers of five, of which the last one
// decides.
func TestAMajorityDecides(t *testing.T) {
	later := sent.Add(5 * time.Millisecond)
	yes, no, other := granted(later), refused("h", time.Second), refused("g", 2*time.Second)
	gone, mute := failed(errPasses), failed(errStays)
	for name, c := range map[string]struct {
		votes []vote
		want  string
	}{
		"three votes":                      {[]vote{yes, granted(sent), yes}, "granted since the first"},
		"three of five":                    {[]vote{no, yes, other, yes, yes}, "granted"},
		"two are gone":                     {[]vote{gone, mute, yes, yes, yes}, "granted"},
		"another has three":                {[]vote{no, no, no}, "held by h for 1s"},
		"another has two of three answers": {[]vote{no, yes, no, other}, "split h"},
		"three split the votes":            {[]vote{yes, no, other, yes, no}, "split h"},
		"others may have those gone":       {[]vote{gone, gone, no, yes, no}, "split h"},
		"another has all that are there":   {[]vote{gone, no, mute, no, no}, "held by h for 1s"},
		"a vote that comes last is lost":   {[]vote{gone, no, mute, no, yes}, "split h"},
		"another has two, three are gone":  {[]vote{no, gone, no, mute, gone}, "fault that passes: 3 of 5"},
		"three are gone":                   {[]vote{gone, mute, gone}, "fault that passes: 3 of 5"},
		"three are gone beside a vote":     {[]vote{yes, gone, mute, gone}, "fault that passes: 3 of 5"},
		"two refuse for good":              {[]vote{gone, mute, mute}, "fault that passes: 3 of 5"},
		"three refuse for good":            {[]vote{mute, mute, mute}, "fault that stays: 3 of 5"},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(5)
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			give(fakes, c.votes[:len(c.votes)-1]...)
			if got.times != 0 {
				t.Fatal("decided too early")
			}
			last := len(c.votes) - 1
			fakes[last].votes[0].answer(c.votes[last].answer, c.votes[last].err)
			for _, f := range fakes {
				for _, w := range f.withdrawals {
					w.answer(store.ReleaseResult{Status: store.Freed}, nil)
				}
			}
			if got.times != 1 {
				t.Fatalf("told %d times", got.times)
			}
			if text := textOf(got); !strings.HasPrefix(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// textOf puts an answer into words.
func textOf(o outcome[store.Answer]) string {
	var fault *store.Fault
	switch a := o.answer; {
	case errors.As(o.err, &fault):
		nature := map[bool]string{true: "passes", false: "stays"}[fault.Temporary]
		_, counts, _ := strings.Cut(fault.Error(), "no majority: ")
		return fmt.Sprintf("fault that %s: %s", nature, counts)
	case a.Granted && a.Since.Equal(sent):
		return "granted since the first"
	case a.Granted:
		return "granted"
	case a.SplitVote:
		return "split " + a.Holder
	default:
		return fmt.Sprintf("held by %s for %v", a.Holder, a.Remaining)
	}
}

// A ballot that is lost is withdrawn from who has voted for it or may have, before
// anybody is told, and also from who votes later. The waiter stays in line, and
// nobody is woken.
//
//faults:row 7: votes that are no majority
func TestALostBallotIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(5)
		var got outcome[store.Answer]
		s.Enqueue(request().Enqueue(), got.take)
		give(fakes, granted(sent), failed(errPasses), refused("h", 0), refused("h", 0))
		if got.times != 0 {
			t.Fatal("told before the vote for it was withdrawn or the last one could be known")
		}
		fakes[4].votes[0].answer(refused("h", 0).answer, nil)
		if counts := withdrawn(fakes); !slices.Equal(counts, []int{1, 1, 0, 0, 0}) {
			t.Errorf("withdrawn %v", counts)
		}
		w := fakes[0].withdrawals[0]
		if w.request.Token != "ballot" || w.request.Waiter != "" || fakes[0].woken[0] {
			t.Errorf("withdrawn by %+v", w.request)
		}
		if got.times != 0 {
			t.Error("told before its vote was withdrawn")
		}
		w.answer(store.ReleaseResult{Status: store.Freed}, nil)
		if got.times != 1 || len(s.ballots) != 0 {
			t.Error("not told, or not forgotten")
		}
	})
}

func TestAVoteThatComesLateIsWithdrawn(t *testing.T) {
	bubble(t, "for a ballot that is lost", func(t *testing.T) {
		s, fakes := newStore(3)
		var got outcome[store.Answer]
		s.Enqueue(request().Enqueue(), got.take)
		give(fakes, refused("h", 0), refused("h", 0))
		if got.times != 1 {
			t.Fatal("undecided")
		}
		fakes[2].votes[0].answer(granted(sent).answer, nil)
		if counts := withdrawn(fakes); !slices.Equal(counts, []int{0, 0, 1}) {
			t.Errorf("withdrawn %v", counts)
		}
	})
	for name, c := range map[string]struct {
		last vote
		want []int
	}{
		"for a lease that is released": {granted(sent), []int{1, 1, 2}},
		"where it may come":            {failed(errPasses), []int{1, 1, 2}},
		"but not where it cannot come": {failed(errStays), []int{1, 1, 1}},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(3)
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			give(fakes, granted(sent), granted(sent))
			s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), func(store.ReleaseResult, error) {})
			fakes[2].votes[0].answer(c.last.answer, c.last.err)
			if counts := withdrawn(fakes); !slices.Equal(counts, c.want) {
				t.Errorf("withdrawn %v", counts)
			}
		})
	}
	bubble(t, "but not for a lease that is held", func(t *testing.T) {
		s, fakes := newStore(3)
		var got outcome[store.Answer]
		s.Enqueue(request().Enqueue(), got.take)
		give(fakes, granted(sent), granted(sent), granted(sent))
		if counts := withdrawn(fakes); got.times != 1 || !slices.Equal(counts, []int{0, 0, 0}) {
			t.Errorf("told %d times, withdrawn %v", got.times, counts)
		}
	})
}

// Nobody does that, but each question gets its answer, and no vote stays.
func TestABallotThatIsReleasedBeforeItIsDecidedIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		votes []vote
		taken []int
	}{
		"granted": {[]vote{granted(sent), granted(sent), granted(sent)}, []int{2, 2, 2}},
		"lost":    {[]vote{refused("h", 0), refused("h", 0)}, []int{1, 1, 1}},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(3)
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			s.Release(request().Release(), func(store.ReleaseResult, error) {})
			give(fakes, c.votes...)
			for _, f := range fakes { // those of a lost one are waited for
				for _, w := range f.taken()[1:] {
					w.answer(store.ReleaseResult{}, nil)
				}
			}
			if got.times != 1 || got.err != nil {
				t.Errorf("told %d times, %v", got.times, got.err)
			}
			if taken := withdrawn(fakes); !slices.Equal(taken, c.taken) {
				t.Errorf("withdrawn %v", taken)
			}
		})
	}
}

// As long as a server was neither met nor asked in vain, it may be one of those that
// have answered.
func TestNobodyIsGrantedALockBeforeAllServersAreKnown(t *testing.T) {
	for name, last := range map[string]struct {
		run     string
		granted bool
	}{"another server": {"run 9", true}, "the same server": {"run 1", false}, "none": {"", true}} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(3)
			s.muster.places[2].run = ""
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			give(fakes, granted(sent), granted(sent))
			if got.times != 0 {
				t.Fatal("decided without having met a server")
			}
			err := error(errPasses)
			if last.run != "" {
				err = s.muster.meet(2, last.run)
			}
			if err != nil {
				fakes[2].votes[0].answer(store.Answer{}, &store.Fault{Err: err})
			} else {
				fakes[2].votes[0].answer(granted(sent).answer, nil)
			}
			for _, f := range fakes {
				for _, w := range f.withdrawals {
					w.answer(store.ReleaseResult{}, nil)
				}
			}
			if got.times != 1 || got.answer.Granted != last.granted || (got.err == nil) != last.granted {
				t.Errorf("got %+v", got)
			}
		})
	}
}

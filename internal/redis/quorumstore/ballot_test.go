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

// Each row has the replies of the first of five servers. The last reply decides the ballot.
func TestMajorityDecides(t *testing.T) {
	t.Parallel()
	later := sent.Add(5 * time.Millisecond)
	yes, no, other := granted(later), refused("h", time.Second), refused("g", 2*time.Second)
	fault, permanent := failed(errTemporary), failed(errPermanent)
	for name, c := range map[string]struct {
		votes []vote
		want  string
	}{
		"three votes":                     {[]vote{yes, granted(sent), yes}, "granted since the first request"},
		"three of five":                   {[]vote{no, yes, other, yes, yes}, "granted"},
		"two failed":                      {[]vote{fault, permanent, yes, yes, yes}, "granted"},
		"another has three":               {[]vote{no, no, no}, "held by h for 1s"},
		"another has them for ever":       {[]vote{no, refused("h", -1), refused("h", -1)}, "held by h for -1ns"},
		"another has them, asked briefly": {[]vote{no, refused("h", 0), refused("h", 0)}, "held by h for 0s"},
		"another has two of three votes":  {[]vote{no, yes, no, other}, "split h"},
		"three split the votes":           {[]vote{yes, no, other, yes, no}, "split h"},
		"two failed, votes are split":     {[]vote{fault, fault, no, yes, no}, "split h"},
		"another has all votes":           {[]vote{fault, no, permanent, no, no}, "held by h for 1s"},
		"the last vote is too late":       {[]vote{fault, no, permanent, no, yes}, "split h"},
		"another has two, three failed":   {[]vote{no, fault, no, permanent, fault}, "temporary fault: 3 of 5"},
		"three failed":                    {[]vote{fault, permanent, fault}, "temporary fault: 3 of 5"},
		"three failed, one vote":          {[]vote{yes, fault, permanent, fault}, "temporary fault: 3 of 5"},
		"two failed permanently":          {[]vote{fault, permanent, permanent}, "temporary fault: 3 of 5"},
		"three failed permanently":        {[]vote{permanent, permanent, permanent}, "permanent fault: 3 of 5"},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(5)
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			reply(fakes, c.votes[:len(c.votes)-1]...)
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
				t.Fatalf("done was called %d times", got.times)
			}
			if text := textOf(got); !strings.HasPrefix(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// textOf describes an answer.
func textOf(o outcome[store.Answer]) string {
	var fault *store.Fault
	switch a := o.answer; {
	case errors.As(o.err, &fault):
		kind := map[bool]string{true: "temporary", false: "permanent"}[fault.Temporary]
		_, counts, _ := strings.Cut(fault.Error(), "no majority: ")
		return fmt.Sprintf("%s fault: %s", kind, counts)
	case a.Granted && a.Since.Equal(sent):
		return "granted since the first request"
	case a.Granted:
		return "granted"
	case a.SplitVote:
		return "split " + a.Holder
	default:
		return fmt.Sprintf("held by %s for %v", a.Holder, a.Remaining)
	}
}

// A lost ballot is withdrawn from each server that has voted or may have voted for it. done is
// called after the known votes are withdrawn. The waiter stays in the queue, and the server
// notifies no waiter.
func TestLostBallotIsWithdrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(5)
		var got outcome[store.Answer]
		s.Enqueue(request().Enqueue(), got.take)
		reply(fakes, granted(sent), failed(errTemporary), refused("h", 0), refused("h", 0))
		if got.times != 0 {
			t.Fatal("done was called before the last reply decided the ballot")
		}
		fakes[4].votes[0].answer(refused("h", 0).answer, nil)
		if counts := withdrawn(fakes); !slices.Equal(counts, []int{1, 1, 0, 0, 0}) {
			t.Errorf("withdrawn %v", counts)
		}
		w := fakes[0].withdrawals[0]
		if w.request.Token != "ballot" || w.request.Waiter != "" || fakes[0].woken[0] {
			t.Errorf("withdrawn by %+v", w.request)
		}
		if unknown := fakes[1].withdrawals[0].request; w.request.Bound != request().Bound/2 || unknown.Bound != request().Bound {
			t.Errorf("done waits for %v, and the other withdrawal takes %v", w.request.Bound, unknown.Bound)
		}
		if got.times != 0 {
			t.Error("done was called before the vote was withdrawn")
		}
		w.answer(store.ReleaseResult{Status: store.Freed}, nil)
		if got.times != 1 || len(s.ballots) != 0 {
			t.Error("done was not called, or the ballot is not removed")
		}
	})
}

func TestLateVoteIsWithdrawn(t *testing.T) {
	t.Parallel()
	bubble(t, "for a lost ballot", func(t *testing.T) {
		s, fakes := newStore(3)
		var got outcome[store.Answer]
		s.Enqueue(request().Enqueue(), got.take)
		reply(fakes, refused("h", 0), refused("h", 0))
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
		"if it may arrive":            {failed(errTemporary), []int{1, 1, 2}},
		"but not if it cannot arrive": {failed(errPermanent), []int{1, 1, 1}},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := leaseOfTwo()
			s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), func(store.ReleaseResult, error) {})
			fakes[2].votes[0].answer(c.last.answer, c.last.err)
			if counts := withdrawn(fakes); !slices.Equal(counts, c.want) {
				t.Errorf("withdrawn %v", counts)
			}
		})
	}
	bubble(t, "but not for a held lease", func(t *testing.T) {
		s, fakes := newStore(3)
		var got outcome[store.Answer]
		s.Enqueue(request().Enqueue(), got.take)
		reply(fakes, granted(sent), granted(sent), granted(sent))
		if counts := withdrawn(fakes); got.times != 1 || !slices.Equal(counts, []int{0, 0, 0}) {
			t.Errorf("done was called %d times, withdrawn %v", got.times, counts)
		}
	})
}

// The engine does not do that. But done must be called, and no vote may stay.
func TestBallotReleasedBeforeItIsDecidedCallsDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		votes     []vote
		withdrawn []int
	}{
		"granted": {[]vote{granted(sent), granted(sent), granted(sent)}, []int{2, 2, 2}},
		"lost":    {[]vote{refused("h", 0), refused("h", 0)}, []int{1, 1, 1}},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(3)
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			s.Release(request().Release(), func(store.ReleaseResult, error) {})
			reply(fakes, c.votes...)
			for _, f := range fakes { // done waits for the withdrawals of a lost ballot
				for n := 0; n < len(f.allWithdrawals()); n++ { // a server that has no vote yet gets another one
					f.allWithdrawals()[n].answer(store.ReleaseResult{}, nil)
				}
			}
			if got.times != 1 || got.err != nil {
				t.Errorf("done was called %d times, %v", got.times, got.err)
			}
			if counts := withdrawn(fakes); !slices.Equal(counts, c.withdrawn) {
				t.Errorf("withdrawn %v", counts)
			}
		})
	}
}

// A server that was not identified and has not failed may be the same as a server that has
// replied.
func TestLockIsNotGrantedBeforeAllServersAreKnown(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]struct {
		run     string
		granted bool
	}{"another server": {"run 9", true}, "the same server": {"run 1", false}, "none": {"", true}} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := newStore(3)
			s.membership.members[2].run = ""
			var got outcome[store.Answer]
			s.Enqueue(request().Enqueue(), got.take)
			reply(fakes, granted(sent), granted(sent))
			if got.times != 0 {
				t.Fatal("decided before a server was identified")
			}
			err := error(errTemporary)
			if last.run != "" {
				err = s.membership.identify(2, last.run)
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

// The answer of a majority has the largest number of waiters of a server.
func TestGrantHasLargestNumberOfWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(3)
		var got outcome[store.Answer]
		s.Take(request().Take(), got.take)
		for i, f := range fakes[:2] {
			f.votes[0].answer(store.Answer{Granted: true, Since: sent, Waiting: 2 - i}, nil)
		}
		if !got.answer.Granted || got.answer.Waiting != 2 {
			t.Errorf("got %+v", got.answer)
		}
		if r := fakes[0].votes[0].request; r.Claim != r.TTL || r.Join || r.Token != "ballot" {
			t.Errorf("asked by %+v", r)
		}
	})
}

// A missing majority names a permanent failure if one is the reason. Its outcome is unknown
// if that of any server is.
func TestMissingMajority(t *testing.T) {
	t.Parallel()
	s, _ := newStore(5)
	for name, c := range map[string]struct {
		failures           []error
		cause              error
		unknown, temporary bool
	}{
		"few":                     {[]error{errPermanent, errPermanent}, nil, false, false},
		"temporary failures":      {[]error{errTemporary, errTemporary, errTemporary}, errTemporary, true, true},
		"two permanent failures":  {[]error{errTemporary, errPermanent, errPermanent}, errTemporary, true, true},
		"three of four permanent": {[]error{errTemporary, errPermanent, errPermanent, errPermanent}, errPermanent, true, false},
		"permanent failures":      {[]error{errPermanent, errPermanent, errPermanent}, errPermanent, false, false},
	} {
		err := s.missingMajority(c.failures)
		if c.cause == nil && err == nil {
			continue
		}
		if fault := store.FaultOf(err); !errors.Is(err, c.cause) || fault.Unknown != c.unknown || fault.Temporary != c.temporary {
			t.Errorf("%s: %v, unknown %v, temporary %v", name, err, fault.Unknown, fault.Temporary)
		}
	}
}

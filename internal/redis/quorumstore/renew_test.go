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

// lease returns a Store of five fakes with a held lease. The first three fakes have voted for
// the lease.
func lease(t *testing.T) (*Store, []*fake) {
	t.Helper()
	s, fakes := newStore(5)
	var got outcome[store.Answer]
	s.Enqueue(request().Enqueue(), got.take)
	no := refused("h", 0)
	reply(fakes, granted(sent), granted(sent), granted(sent), no, no)
	if !got.answer.Granted {
		t.Fatal("not granted")
	}
	return s, fakes
}

func TestRenewalSucceedsIfMajorityHasLease(t *testing.T) {
	t.Parallel()
	held, lost := store.Renewal{Held: true, Since: sent}, store.Renewal{Since: sent}
	type answer struct {
		store.Renewal
		err error
	}
	yes, no, fault := answer{Renewal: held}, answer{Renewal: lost}, answer{err: errTemporary}
	for name, c := range map[string]struct {
		answers []answer // the last one decides
		want    string
	}{
		"three have it":           {[]answer{yes, yes, yes}, "held"},
		"three of five":           {[]answer{no, yes, fault, yes, yes}, "held"},
		"three lost it":           {[]answer{no, no, yes, no}, "lost"},
		"two failed":              {[]answer{yes, yes, fault, no, fault}, "unknown"},
		"one failed":              {[]answer{yes, yes, no, no, fault}, "unknown"},
		"three failed":            {[]answer{yes, fault, fault, yes, fault}, "unknown"},
		"two lost it, one has it": {[]answer{no, no, yes, fault, fault}, "unknown"},
	} {
		bubble(t, name, func(t *testing.T) {
			s, fakes := lease(t)
			var got outcome[store.Renewal]
			s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: time.Second}.Renew(), got.take)
			for i, a := range c.answers {
				if got.times != 0 {
					t.Fatal("decided too early")
				}
				fakes[i].renewals[0].answer(a.Renewal, a.err)
			}
			for _, f := range fakes { // servers without the lease refuse their votes
				for _, v := range f.votes[1:] {
					v.answer(refused("h", 0).answer, nil)
				}
			}
			text := map[bool]string{true: "held", false: "lost"}[got.answer.Held]
			if got.err != nil {
				text = "unknown"
			}
			if got.err != nil && !errors.Is(got.err, errTemporary) {
				t.Errorf("the error %v does not have that of a server", got.err)
			}
			if got.times != 1 || text != c.want {
				t.Errorf("done was called %d times, %s, want %s", got.times, text, c.want)
			}
		})
	}
}

// The validity starts at the oldest of the answers of the majority.
func TestRenewalCountsFromOldestAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := lease(t)
		var got outcome[store.Renewal]
		s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: time.Second}.Renew(), got.take)
		for i, age := range []time.Duration{time.Second, 0, 2 * time.Second} {
			fakes[i].renewals[0].answer(store.Renewal{Held: true, Since: sent.Add(age), Waiting: i}, nil)
		}
		if !got.answer.Since.Equal(sent) {
			t.Errorf("since %v", got.answer.Since.Sub(sent))
		}
		if got.answer.Waiting != 2 {
			t.Errorf("%d waiters, want the largest number", got.answer.Waiting)
		}
	})
}

// A dead server does not end a lease that gains enough votes again. But the gained votes do not
// count while another client may have had a majority.
func TestRenewalCountsGainedVotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := lease(t)
		var got outcome[store.Renewal]
		s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: time.Second}.Renew(), got.take)
		for i, f := range fakes[1:] {
			f.renewals[0].answer(store.Renewal{Held: i < 2, Since: sent.Add(time.Second)}, nil)
		}
		fakes[3].votes[1].answer(granted(sent).answer, nil)
		fakes[4].votes[1].answer(refused("h", 0).answer, nil)
		if got.times != 0 {
			t.Fatal("renewed before the last server could have lost it")
		}
		fakes[0].renewals[0].answer(store.Renewal{}, errTemporary)
		if got.times != 1 || !got.answer.Held || !got.answer.Since.Equal(sent) {
			t.Errorf("done was called %d times: %+v, %v", got.times, got.answer, got.err)
		}
	})
}

// Servers without the lease are asked for their votes. If the lease is released meanwhile, these
// votes are withdrawn.
func TestRenewalAsksForMissingVotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := lease(t)
		s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: 3 * time.Second}.Renew(), func(store.Renewal, error) {})
		for i, f := range fakes {
			f.renewals[0].answer(store.Renewal{Held: i < 3, Since: sent}, nil)
		}
		for i, f := range fakes {
			if want := 1 + i/3; len(f.votes) != want {
				t.Errorf("server %d was asked %d times", i, len(f.votes))
			}
		}
		again := fakes[4].votes[1]
		if again.request.Join || again.request.Token != "ballot" || again.request.TTL != 3*time.Second {
			t.Errorf("asked by %+v", again.request)
		}
		s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), func(store.ReleaseResult, error) {})
		again.answer(store.Answer{Granted: true, Since: sent}, nil)
		if len(fakes[4].withdrawals) != 2 {
			t.Error("a vote for a released lease is not withdrawn")
		}
	})
}

// A vote that a renewal asked for may arrive after the release. It is withdrawn. A renewal asks
// for no votes after the release.
func TestVoteGainedAfterReleaseIsWithdrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := lease(t)
		s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: time.Second}.Renew(), func(store.Renewal, error) {})
		for i, f := range fakes[:4] {
			f.renewals[0].answer(store.Renewal{Held: i < 3, Since: sent}, nil)
		}
		s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), func(store.ReleaseResult, error) {})
		fakes[3].votes[1].answer(store.Answer{}, errTemporary)
		if n := len(fakes[3].withdrawals); n != 2 {
			t.Errorf("%d withdrawals, want one more", n)
		}
		fakes[4].renewals[0].answer(store.Renewal{}, nil)
		if n := len(fakes[4].votes); n != 1 {
			t.Error("asked for a vote after the release")
		}
	})
}

// A request for a vote that was not sent does not revoke a vote that may have been granted before:
// if its withdrawal fails, it is retried.
func TestUnsentRequestRevokesNoVote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := lease(t)
		f := fakes[4]
		for n, err := range []error{errTemporary, &store.Fault{Temporary: true, Err: errors.New("not sent")}} {
			s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot", TTL: time.Second}.Renew(), func(store.Renewal, error) {})
			f.renewals[n].answer(store.Renewal{}, nil)
			f.votes[1+n].answer(store.Answer{}, err)
		}
		s.Release(storetest.AnyRequest{Key: "k", Token: "ballot"}.Release(), func(store.ReleaseResult, error) {})
		f.withdrawals[0].answer(store.ReleaseResult{}, errTemporary)
		if n := s.withdrawals[4].count(); n != 1 {
			t.Errorf("%d votes are withdrawn later", n)
		}
	})
}

// If a renewal finds that the lease is lost, the gained votes are withdrawn. They may arrive
// before or after that.
func TestLostLeaseKeepsNoVotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := lease(t)
		var got outcome[store.Renewal]
		s.Renew(storetest.AnyRequest{Key: "k", Token: "ballot"}.Renew(), got.take)
		fakes[0].renewals[0].answer(store.Renewal{}, nil)
		fakes[0].votes[1].answer(granted(sent).answer, nil)
		fakes[1].renewals[0].answer(store.Renewal{}, nil)
		fakes[2].renewals[0].answer(store.Renewal{}, nil)
		if got.times != 1 || got.answer.Held || got.err != nil {
			t.Fatalf("done was called %d times: %+v, %v", got.times, got.answer, got.err)
		}
		fakes[1].votes[1].answer(granted(sent).answer, nil)
		fakes[2].votes[1].answer(refused("h", 0).answer, nil)
		if counts := withdrawn(fakes); !slices.Equal(counts, []int{1, 1, 0, 0, 0}) {
			t.Errorf("withdrawn %v", counts)
		}
	})
}

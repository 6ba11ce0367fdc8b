package redisstore

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// After a lost reply the transition is resent. The reply to the second send must be decoded with
// the first one in mind.
func TestEachScriptSurvivesLostReply(t *testing.T) {
	t.Parallel()
	rejoined := storetest.Request(storetest.Me1)
	rejoined.Rejoin = storetest.Me2
	tests := []struct {
		name   string
		before storetest.State
		do     func(*testing.T, *syncStore)
		after  storetest.State
	}{
		{"enqueue, granted", storetest.State{}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := enqueue(t, s); !got.granted {
				t.Errorf("%+v", got)
			}
		}, storetest.State{Value: storetest.Me1, TTL: storetest.TTL}},
		{"enqueue, joined once", storetest.State{Value: "other", TTL: storetest.TTL}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := enqueue(t, s); got.granted || !got.foreign {
				t.Errorf("%+v", got)
			}
		}, storetest.State{Value: "other", TTL: storetest.TTL, Queue: []string{storetest.Me1}}},
		{"renew", storetest.State{Value: storetest.Me1, TTL: storetest.Claim}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := renew(t, s); !got.granted {
				t.Errorf("%+v", got)
			}
		}, storetest.State{Value: storetest.Me1, TTL: storetest.TTL}},
		{"release", storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := release(t, s); got.status != store.Unsure {
				t.Errorf("%+v; the second send found nothing, but the first one freed the key", got)
			}
		}, storetest.State{}},
		{"rejoin", storetest.State{Value: storetest.Me1, TTL: storetest.Claim}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := rejoin(t, s); got.status != store.Unsure {
				t.Errorf("%+v; the second send found nothing, but the first one rejoined", got)
			}
		}, storetest.State{Value: storetest.Me2, TTL: storetest.TTL}},
		{"share", storetest.State{}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got, err := s.Enqueue(t.Context(), sharedRequest(0)); err != nil || !got.Granted {
				t.Errorf("%+v, %v", got, err)
			}
		}, storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{storetest.MePermit1: storetest.TTL}}},
		{"share, joined once", storetest.State{Value: storetest.Bob1, TTL: storetest.TTL}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got, err := s.Enqueue(t.Context(), sharedRequest(0)); err != nil || got.Granted || got.Holder != storetest.Bob1 {
				t.Errorf("%+v, %v", got, err)
			}
		}, storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.MePermit1}}},
		{"renew a shared lease", storetest.State{Value: storetest.Marker, TTL: storetest.Claim, Shared: leases{storetest.MePermit1: storetest.Claim}}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got, err := s.Renew(t.Context(), sharedRequest(0)); err != nil || !got.Held {
				t.Errorf("%+v, %v", got, err)
			}
		}, storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{storetest.MePermit1: storetest.TTL}}},
		{"release a shared lease", storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{storetest.MePermit1: storetest.TTL}}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got, err := s.Release(t.Context(), sharedRequest(0)); err != nil || got.Status != store.Unsure {
				t.Errorf("%+v, %v; the second send found nothing, but the first one ended the lease", got, err)
			}
		}, storetest.State{}},
		{"release a shared lease and rejoin", storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{storetest.MePermit1: storetest.TTL}}, func(t *testing.T, s *syncStore) {
			t.Helper()
			r := sharedRequest(0)
			r.Rejoin = store.NewToken(storetest.Me, 2, 2)
			if got, err := s.Release(t.Context(), r); err != nil || got.Status != store.Unsure {
				t.Errorf("%+v, %v; the second send found nothing, but the first one rejoined", got, err)
			}
		}, storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{store.NewToken(storetest.Me, 2, 2): storetest.TTL}}},
		{"begin", storetest.State{Record: runningRecord(storetest.Bob1, "1")}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := begin(rerun)(t, s); !got.granted || got.number != 2 {
				t.Errorf("%+v; the second send must not begin another attempt", got)
			}
		}, storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "2")}},
		{"begin, a verdict", storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: doneRecord(storetest.Bob1)}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := begin()(t, s); got.verdict != store.Done || got.record != storetest.Record {
				t.Errorf("%+v", got)
			}
		}, storetest.State{Record: doneRecord(storetest.Bob1)}},
		{"commit", storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1")}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := finish(store.Commit)(t, s); got.status != store.Unsure || got.stored != store.WasStored {
				t.Errorf("%+v; the second send found no key, and the record of the first one", got)
			}
		}, storetest.State{Record: doneRecord(storetest.Me1)}},
		{"commit without a record", storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := finish(store.Commit)(t, s); got.status != store.Unsure || got.stored != store.WasStored {
				t.Errorf("%+v", got)
			}
		}, storetest.State{Record: doneRecord(storetest.Me1)}},
		{"abort", storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1")}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := finish(store.Abort)(t, s); got.status != store.Unsure || got.stored != store.WasStored {
				t.Errorf("%+v", got)
			}
		}, storetest.State{Record: abortedRecord(storetest.Me1), RecordTTL: abortTTL}},
		{"forget", storetest.State{Record: runningRecord(storetest.Bob1, "1")}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := resolve(t, s); got.resolved != store.Resolved {
				t.Errorf("%+v; the second send found no record, but the first one was applied", got)
			}
		}, storetest.State{Record: forgottenRecord(storetest.Bob1)}},
		{"answer", storetest.State{Record: runningRecord(storetest.Bob1, "1")}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := resolveAs(store.ResolveAnswered, storetest.Bob1)(t, s); got.resolved != store.Resolved {
				t.Errorf("%+v; the second send found the record of the first one", got)
			}
		}, storetest.State{Record: resolvedRecord(storetest.Bob1, storetest.Record)}},
		{"outcome", storetest.State{Record: doneRecord(storetest.Bob1)}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := readOutcome(storetest.Keep)(t, s); got.read.State != store.WasAnswered {
				t.Errorf("%+v", got)
			}
		}, storetest.State{Record: doneRecord(storetest.Bob1)}},
	}
	for name, mode := range map[string]redistest.Mode{"connection closed": redistest.CloseConn, "connection open": redistest.KeepConn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, test := range tests {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					s, proxy, direct := behindProxy(t)
					test.before.Put(t, direct)
					// The server does not know the script yet, so EVALSHA runs nothing.
					dropped := proxy.DropReply(redistest.Named("EVAL"), mode)
					test.do(t, s)
					suite.AwaitClosed(t, "the reply is lost", dropped)
					test.after.Check(t, direct)
				})
			}
		})
	}
}

func TestLateGrantOfEnqueueIsReported(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t, storetest.LongReads)
	mustReportLateGrant(t, s, proxy, storetest.Me1, func(r storetest.AnyRequest) error {
		_, err := s.Enqueue(t.Context(), r)
		return err
	})
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Check(t, direct)
}

func TestLateGrantOfSharedLeaseIsReported(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t, storetest.LongReads)
	mustReportLateGrant(t, s, proxy, storetest.MePermit1, func(r storetest.AnyRequest) error {
		r.Token, r.Limit = storetest.MePermit1, 2
		_, err := s.Enqueue(t.Context(), r)
		return err
	})
	storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{storetest.MePermit1: storetest.TTL}}.Check(t, direct)
}

func TestLateGrantOfBeginIsReported(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t, storetest.LongReads)
	mustReportLateGrant(t, s, proxy, storetest.Me1, func(r storetest.AnyRequest) error {
		r.Attempt = storetest.AttemptRequest(storetest.Me1).Attempt
		_, err := s.Enqueue(t.Context(), r)
		return err
	})
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1")}.Check(t, direct)
}

func TestLateKeptReleaseReportsTokenThatRejoined(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t, storetest.LongReads)
	storetest.State{Value: storetest.Me1, TTL: storetest.Claim}.Put(t, direct)
	mustReportLateGrant(t, s, proxy, storetest.Me2, func(r storetest.AnyRequest) error {
		r.Rejoin = storetest.Me2
		_, err := s.Release(t.Context(), r)
		return err
	})
	storetest.State{Value: storetest.Me2, TTL: storetest.TTL}.Check(t, direct)
}

// mustReportLateGrant runs a transition, holds both of its sends until its bound has ended, and
// releases the first one. It fails the test unless the token is reported as granted late.
func mustReportLateGrant(t *testing.T, s *syncStore, proxy *redistest.Proxy, token string, do func(storetest.AnyRequest) error) {
	t.Helper()
	grants := make(chan [2]string, 2)
	s.OnLateGrant(func(key, token string) { grants <- [2]string{key, token} })
	r := storetest.Request(storetest.Me1)
	r.Bound = heldBound
	release1, release2, err := bothHeld(t, proxy, "EVAL", func() error { return do(r) })
	if err == nil {
		t.Fatal("an answer arrived, although both sends are held")
	}
	release1()
	if got := suite.Receive(t, "a late grant", grants); got != [2]string{"k", token} {
		t.Errorf("late grant %v, want the token %q", got, token)
	}
	release2()
}

func TestLateRepliesWithoutGrantAreNotReported(t *testing.T) {
	t.Parallel()
	commits := storetest.AttemptRequest(storetest.Me1)
	commits.Ending, commits.Record = store.Commit, []byte(storetest.Record)
	for _, test := range []struct {
		name   string
		before storetest.State
		r      storetest.AnyRequest
		begins bool
		after  storetest.State
	}{
		{"release", storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, storetest.Request(storetest.Me1), false, storetest.State{}},
		{"commit", storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1")}, commits, false, storetest.State{Record: doneRecord(storetest.Me1)}},
		{"begin, a verdict", storetest.State{Record: doneRecord(storetest.Bob1)}, storetest.AttemptRequest(storetest.Me1), true, storetest.State{Record: doneRecord(storetest.Bob1)}},
		{
			"begin, busy",
			storetest.State{Value: storetest.Bob1, TTL: storetest.TTL},
			storetest.AttemptRequest(storetest.Me1), true,
			storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Me1}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, proxy, direct := behindProxy(t, storetest.LongReads)
			test.before.Put(t, direct)
			s.OnLateGrant(func(key, token string) { t.Errorf("late grant %q %q", key, token) })
			test.r.Bound = heldBound
			release1, release2, err := bothHeld(t, proxy, "EVAL", func() (err error) {
				if test.begins {
					_, err = s.Enqueue(t.Context(), test.r)
				} else {
					_, err = s.Release(t.Context(), test.r)
				}
				return err
			})
			if err == nil {
				t.Error("an answer arrived, although both sends are held")
			}
			release1()
			release2()
			if err := s.Close(t.Context()); err != nil { // both replies have arrived
				t.Fatal(err)
			}
			test.after.Check(t, direct)
		})
	}
}

// heldBound is the bound of a transition that is sent twice in vain. The second send follows
// after half of the bound, and a busy machine may need long for it.
const heldBound = 4 * time.Second

// bothHeld runs a transition until its bound ends, and holds both sends of the command with this
// name. It returns functions that release the sends, and the error of the transition.
func bothHeld(t *testing.T, proxy *redistest.Proxy, name string, do func() error) (first, second func(), err error) {
	t.Helper()
	first, seenFirst := proxy.HoldCommand(redistest.Named(name))
	second, seenSecond := proxy.HoldCommand(redistest.Named(name))
	t.Cleanup(func() { first(); second() })
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	suite.Receive(t, "the first send is held", seenFirst)
	suite.Receive(t, "the second send is held", seenSecond)
	return first, second, suite.Receive(t, "the transition ends", ended)
}

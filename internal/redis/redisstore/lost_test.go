package redisstore

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A transition whose reply is lost is sent again, and what the second send
// finds is read rightly.
//
//faults:row 1, 10: for each script
func TestALostReplyOfEachScriptIsSurvived(t *testing.T) {
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
			if got := enqueue(t, s); got.granted || !got.silent {
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
			if got := release(t, s); got.end != store.Unsure {
				t.Errorf("%+v; the second send found nothing, but the first one freed the key", got)
			}
		}, storetest.State{}},
		{"rejoin", storetest.State{Value: storetest.Me1, TTL: storetest.Claim}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := rejoin(t, s); got.end != store.Unsure {
				t.Errorf("%+v; the second send found nothing, but the first one rejoined", got)
			}
		}, storetest.State{Value: storetest.Me2, TTL: storetest.TTL}},
		{"begin", storetest.State{Record: runs(storetest.Bob1, "1")}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := begin(rerun)(t, s); !got.granted || got.number != 2 {
				t.Errorf("%+v; the second send is not another attempt", got)
			}
		}, storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "2")}},
		{"begin, a verdict", storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: done(storetest.Bob1)}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := begin()(t, s); got.verdict != store.Done || got.record != storetest.Record {
				t.Errorf("%+v", got)
			}
		}, storetest.State{Record: done(storetest.Bob1)}},
		{"commit", storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1")}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := finish(store.Commit)(t, s); got.end != store.Unsure || got.stored != store.WasStored {
				t.Errorf("%+v; the second send found no key, but what the first one stored", got)
			}
		}, storetest.State{Record: done(storetest.Me1)}},
		{"commit of what was lost", storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := finish(store.Commit)(t, s); got.end != store.Unsure || got.stored != store.WasStored {
				t.Errorf("%+v", got)
			}
		}, storetest.State{Record: done(storetest.Me1)}},
		{"abort", storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1")}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := finish(store.Abort)(t, s); got.end != store.Unsure || got.stored != store.WasStored {
				t.Errorf("%+v", got)
			}
		}, storetest.State{Record: aborted(storetest.Me1), RecordTTL: abortTTL}},
		{"resolve", storetest.State{Record: runs(storetest.Bob1, "1")}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := resolve(t, s); got.running {
				t.Errorf("%+v", got)
			}
		}, storetest.State{}},
	}
	for name, mode := range map[string]redistest.Mode{"closed": redistest.CloseConn, "silent": redistest.KeepConn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, test := range tests {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					s, proxy, direct := behindProxy(t)
					test.before.Put(t, direct)
					// The script is not known yet: EVALSHA has run nothing.
					dropped := proxy.DropReply(redistest.Named("EVAL"), mode)
					test.do(t, s)
					<-dropped
					test.after.Check(t, direct)
				})
			}
		})
	}
}

func TestALateGrantOfEnqueueIsHinted(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t, storetest.LongReads)
	late(t, s, proxy, storetest.Me1, func(r storetest.AnyRequest) error {
		_, err := s.Enqueue(t.Context(), r)
		return err
	})
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Check(t, direct)
}

func TestALateGrantOfBeginIsHinted(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t, storetest.LongReads)
	late(t, s, proxy, storetest.Me1, func(r storetest.AnyRequest) error {
		r.Attempt = storetest.AttemptRequest(storetest.Me1).Attempt
		_, err := s.Enqueue(t.Context(), r)
		return err
	})
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1")}.Check(t, direct)
}

func TestALateKeptReleaseHintsAtTheTokenThatRejoined(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t, storetest.LongReads)
	storetest.State{Value: storetest.Me1, TTL: storetest.Claim}.Put(t, direct)
	late(t, s, proxy, storetest.Me2, func(r storetest.AnyRequest) error {
		r.Rejoin = storetest.Me2
		_, err := s.Release(t.Context(), r)
		return err
	})
	storetest.State{Value: storetest.Me2, TTL: storetest.TTL}.Check(t, direct)
}

// late runs a transition that is given up while both of its sends are held back,
// lets the first go, and fails the test unless the token is reported as granted late.
func late(t *testing.T, s *syncStore, proxy *redistest.Proxy, token string, do func(storetest.AnyRequest) error) {
	t.Helper()
	hints := make(chan [2]string, 2)
	s.OnLateGrant(func(key, token string) { hints <- [2]string{key, token} })
	r := storetest.Request(storetest.Me1)
	r.Bound = heldBound
	hold1, hold2, err := bothHeld(t, proxy, "EVAL", func() error { return do(r) })
	if err == nil {
		t.Fatal("an answer came, though both sends are held")
	}
	hold1()
	if got := storetest.Receive(t, "a hint", hints); got != [2]string{"k", token} {
		t.Errorf("hint %v, want the token %q", got, token)
	}
	hold2()
}

func TestALateAnswerThatGrantsNothingIsNotReported(t *testing.T) {
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
		{"commit", storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1")}, commits, false, storetest.State{Record: done(storetest.Me1)}},
		{"begin, a verdict", storetest.State{Record: done(storetest.Bob1)}, storetest.AttemptRequest(storetest.Me1), true, storetest.State{Record: done(storetest.Bob1)}},
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
			hold1, hold2, err := bothHeld(t, proxy, "EVAL", func() (err error) {
				if test.begins {
					_, err = s.Enqueue(t.Context(), test.r)
				} else {
					_, err = s.Release(t.Context(), test.r)
				}
				return err
			})
			if err == nil {
				t.Error("an answer came, though both sends are held")
			}
			hold1()
			hold2()
			if err := s.Close(t.Context()); err != nil { // both replies are in
				t.Fatal(err)
			}
			test.after.Check(t, direct)
		})
	}
}

// heldBound is the bound of a transition of which both sends are held: it is sent again
// after half of it. A busy machine may need long to send twice.
const heldBound = 2 * time.Second

// bothHeld runs a transition until it is given up, while both sends of its command, which
// has that name, are held back. It returns functions that let each of them pass, and the
// error of the transition.
func bothHeld(t *testing.T, proxy *redistest.Proxy, name string, do func() error) (first, second func(), err error) {
	t.Helper()
	first, seenFirst := proxy.HoldCommand(redistest.Named(name))
	second, seenSecond := proxy.HoldCommand(redistest.Named(name))
	t.Cleanup(func() { first(); second() })
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	storetest.Receive(t, "the first send is held", seenFirst)
	storetest.Receive(t, "the second send is held", seenSecond)
	return first, second, storetest.Receive(t, "it is given up", ended)
}

package redisstore

import (
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A transition whose reply is lost is sent again, and what the second send
// finds is read rightly.
//
//faults:row 1, 10: for each script
func TestALostReplyOfEachScriptIsSurvived(t *testing.T) {
	rejoined := request(me1)
	rejoined.Rejoin = me2
	tests := []struct {
		name   string
		before state
		do     func(*testing.T, *syncStore)
		after  state
	}{
		{"enqueue, granted", state{}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := enqueue(t, s); !got.granted {
				t.Errorf("%+v", got)
			}
		}, state{value: me1, ttl: ttl}},
		{"enqueue, joined once", state{value: "other", ttl: ttl}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := enqueue(t, s); got.granted || !got.silent {
				t.Errorf("%+v", got)
			}
		}, state{value: "other", ttl: ttl, line: []string{me1}}},
		{"renew", state{value: me1, ttl: claim}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := renew(t, s); !got.granted {
				t.Errorf("%+v", got)
			}
		}, state{value: me1, ttl: ttl}},
		{"release", state{value: me1, ttl: ttl}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := release(t, s); got.end != store.Unsure {
				t.Errorf("%+v; the second send found nothing, but the first one freed the key", got)
			}
		}, state{}},
		{"rejoin", state{value: me1, ttl: claim}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := rejoin(t, s); got.end != store.Unsure {
				t.Errorf("%+v; the second send found nothing, but the first one rejoined", got)
			}
		}, state{value: me2, ttl: ttl}},
		{"begin", state{record: runs(bob1, "1")}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := begin(rerun)(t, s); !got.granted || got.number != 2 {
				t.Errorf("%+v; the second send is not another attempt", got)
			}
		}, state{value: me1, ttl: ttl, record: runs(me1, "2")}},
		{"begin, a verdict", state{value: me1, ttl: ttl, record: done(bob1)}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := begin()(t, s); got.verdict != store.Done || got.record != theAnswer {
				t.Errorf("%+v", got)
			}
		}, state{record: done(bob1)}},
		{"commit", state{value: me1, ttl: ttl, record: runs(me1, "1")}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := finish(store.Commit)(t, s); got.end != store.Unsure || got.stored != store.WasStored {
				t.Errorf("%+v; the second send found no key, but what the first one stored", got)
			}
		}, state{record: done(me1)}},
		{"commit of what was lost", state{value: me1, ttl: ttl}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := finish(store.Commit)(t, s); got.end != store.Unsure || got.stored != store.WasStored {
				t.Errorf("%+v", got)
			}
		}, state{record: done(me1)}},
		{"abort", state{value: me1, ttl: ttl, record: runs(me1, "1")}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := finish(store.Abort)(t, s); got.end != store.Unsure || got.stored != store.WasStored {
				t.Errorf("%+v", got)
			}
		}, state{record: aborted(me1), recordTTL: abortLife}},
		{"resolve", state{record: runs(bob1, "1")}, func(t *testing.T, s *syncStore) {
			t.Helper()
			if got := resolve(t, s); got.running {
				t.Errorf("%+v", got)
			}
		}, state{}},
	}
	for name, mode := range map[string]redistest.Mode{"closed": redistest.CloseConn, "silent": redistest.KeepConn} {
		t.Run(name, func(t *testing.T) {
			for _, test := range tests {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					s, proxy, direct := behindProxy(t)
					test.before.put(t, direct)
					// The script is not known yet: EVALSHA has run nothing.
					dropped := proxy.DropReply(redistest.Named("EVAL"), mode)
					test.do(t, s)
					<-dropped
					test.after.check(t, direct)
				})
			}
		})
	}
}

func TestALateGrantOfEnqueueIsHinted(t *testing.T) {
	s, proxy, direct := behindProxy(t, longReads)
	late(t, s, proxy, me1, func(r store.Request) error {
		_, err := s.Enqueue(t.Context(), r)
		return err
	})
	state{value: me1, ttl: ttl}.check(t, direct)
}

func TestALateGrantOfBeginIsHinted(t *testing.T) {
	s, proxy, direct := behindProxy(t, longReads)
	late(t, s, proxy, me1, func(r store.Request) error {
		r.Attempt = attempt(me1).Attempt
		_, err := s.Enqueue(t.Context(), r)
		return err
	})
	state{value: me1, ttl: ttl, record: runs(me1, "1")}.check(t, direct)
}

func TestALateKeptReleaseHintsAtTheTokenThatRejoined(t *testing.T) {
	s, proxy, direct := behindProxy(t, longReads)
	state{value: me1, ttl: claim}.put(t, direct)
	late(t, s, proxy, me2, func(r store.Request) error {
		r.Rejoin = me2
		_, err := s.Release(t.Context(), r)
		return err
	})
	state{value: me2, ttl: ttl}.check(t, direct)
}

// late runs a transition that is given up while both of its sends are held back,
// lets the first go, and fails the test unless the token is reported as granted late.
func late(t *testing.T, s *syncStore, proxy *redistest.Proxy, token string, do func(store.Request) error) {
	t.Helper()
	hints := make(chan [2]string, 2)
	s.OnLateGrant(func(key, token string) { hints <- [2]string{key, token} })
	r := request(me1)
	r.Bound = longBound
	hold1, hold2, err := bothHeld(t, s, proxy, "EVAL", func() error { return do(r) })
	if err == nil {
		t.Fatal("an answer came, though both sends are held")
	}
	hold1()
	if got := receive(t, "a hint", hints); got != [2]string{"k", token} {
		t.Errorf("hint %v, want the token %q", got, token)
	}
	hold2()
}

func TestALateAnswerThatGrantsNothingIsNotReported(t *testing.T) {
	commits := attempt(me1)
	commits.Ending, commits.Record = store.Commit, []byte(theAnswer)
	for _, test := range []struct {
		name   string
		before state
		r      store.Request
		begins bool
		after  state
	}{
		{"release", state{value: me1, ttl: ttl}, request(me1), false, state{}},
		{"commit", state{value: me1, ttl: ttl, record: runs(me1, "1")}, commits, false, state{record: done(me1)}},
		{"begin, a verdict", state{record: done(bob1)}, attempt(me1), true, state{record: done(bob1)}},
		{
			"begin, busy",
			state{value: bob1, ttl: ttl},
			attempt(me1), true,
			state{value: bob1, ttl: ttl, line: []string{me1}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, proxy, direct := behindProxy(t, longReads)
			test.before.put(t, direct)
			s.OnLateGrant(func(key, token string) { t.Errorf("late grant %q %q", key, token) })
			test.r.Bound = longBound
			hold1, hold2, err := bothHeld(t, s, proxy, "EVAL", func() (err error) {
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
			test.after.check(t, direct)
		})
	}
}

package redisstore

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redistest"
	"github.com/reqlock/reqlock/internal/store"
)

// A transition whose reply is lost is sent again, and what the second send
// finds is read rightly.
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
	}
	for name, mode := range map[string]redistest.Mode{"closed": redistest.CloseConn, "silent": redistest.Swallow} {
		t.Run(name, func(t *testing.T) {
			for _, test := range tests {
				t.Run(test.name, func(t *testing.T) {
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
	s, proxy, direct := behindProxy(t)
	late(t, s, proxy, me1, func(r store.Request) error {
		_, err := s.Enqueue(t.Context(), r)
		return err
	})
	state{value: me1, ttl: ttl}.check(t, direct)
}

func TestALateKeptReleaseHintsAtTheTokenThatRejoined(t *testing.T) {
	s, proxy, direct := behindProxy(t)
	state{value: me1, ttl: claim}.put(t, direct)
	late(t, s, proxy, me2, func(r store.Request) error {
		r.Rejoin = me2
		_, err := s.Release(t.Context(), r)
		return err
	})
	state{value: me2, ttl: ttl}.check(t, direct)
}

// late runs a transition whose both sends are held back beyond its bound, lets
// the first go, and fails the test unless it is hinted with the token.
func late(t *testing.T, s *syncStore, proxy *redistest.Proxy, token string, do func(store.Request) error) {
	t.Helper()
	hints := make(chan [2]string, 2)
	s.OnHint(func(key, token string) { hints <- [2]string{key, token} })
	hold1, seen1 := proxy.HoldCommand(redistest.Named("EVAL"))
	hold2, seen2 := proxy.HoldCommand(redistest.Named("EVAL"))
	r := request(me1)
	r.Bound = 200 * time.Millisecond
	if err := do(r); err == nil {
		t.Fatal("an answer came, though both sends are held")
	}
	<-seen1
	<-seen2
	hold1()
	if got := <-hints; got != [2]string{"k", token} {
		t.Errorf("hint %v, want the token %q", got, token)
	}
	hold2()
}

func TestALateReleaseThatKeptNothingIsNotHinted(t *testing.T) {
	s, proxy, direct := behindProxy(t)
	state{value: me1, ttl: ttl}.put(t, direct)
	s.OnHint(func(key, token string) { t.Errorf("hint %q %q", key, token) })
	hold1, _ := proxy.HoldCommand(redistest.Named("EVAL"))
	hold2, _ := proxy.HoldCommand(redistest.Named("EVAL"))
	r := request(me1)
	r.Bound = 200 * time.Millisecond
	if _, err := s.Release(t.Context(), r); err == nil {
		t.Error("an answer came, though both sends are held")
	}
	hold1()
	hold2()
	if err := s.Close(t.Context()); err != nil { // both replies are in
		t.Fatal(err)
	}
	state{}.check(t, direct)
}

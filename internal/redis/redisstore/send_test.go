package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// shortReads makes left-behind commands end soon, so that the test does.
func shortReads(o *redis.Options) { o.ReadTimeout = time.Second }

// behindProxy returns a store behind a proxy, the proxy, and a client that
// sees the server past it.
func behindProxy(t *testing.T, configure ...func(*redis.Options)) (*syncStore, *redistest.Proxy, *redis.Client) {
	t.Helper()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := proxy.Client(t, append([]func(*redis.Options){shortReads}, configure...)...)
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return newStore(t, rdb), proxy, server.Client(t)
}

//faults:row 1
func TestALostReplyIsSurvived(t *testing.T) {
	for name, mode := range map[string]redistest.Mode{"closed": redistest.CloseConn, "silent": redistest.KeepConn} {
		t.Run(name, func(t *testing.T) {
			s, proxy, direct := behindProxy(t, longReads)
			t.Cleanup(proxy.Cut) // where it is silent, the first send waits for its reply
			left := make(chan time.Time, 10)
			s.rdb.(*redis.Client).AddHook(beforeEach{before: func(context.Context) { left <- time.Now() }})
			r, answered := request(me1), make(chan own, 1)
			r.Bound = longBound

			dropped := proxy.DropReply(redistest.Named("SET"), mode)
			s.Store.Take(r, func(answer store.Answer, err error) { answered <- own{answer, err} })
			receive(t, "the reply is lost", dropped)
			if mode == redistest.KeepConn {
				sendAgain(s)
			}
			got := receive(t, "an answer", answered)
			if got.err != nil || !got.answer.Granted {
				t.Fatalf("take: %+v", got)
			}
			if since := got.answer.Since.Sub(<-left); since > 0 {
				t.Errorf("validity counts from %v after the first send, which set the key", since)
			}
			state{value: me1, ttl: ttl}.check(t, direct)
		})
	}
}

func TestGoRedisDoesNotRepeatOurCommands(t *testing.T) {
	s, proxy, _ := behindProxy(t)
	proxy.ResetCommands()
	first := proxy.DropReply(redistest.Named("SET"), redistest.CloseConn)
	second := proxy.DropReply(redistest.Named("SET"), redistest.CloseConn)
	_, err := s.Take(t.Context(), request(me1))
	var fault *store.Fault
	if !errors.As(err, &fault) || !fault.Unknown || !fault.Passing {
		t.Errorf("got %v", err)
	}
	<-first
	<-second
	if n := proxy.Commands()["SET"]; n != 2 {
		t.Errorf("SET was sent %d times, want the first time and one re-send", n)
	}
}

func TestABlackHoleIsLeftBehindAtTheBound(t *testing.T) {
	s, proxy, _ := behindProxy(t, longReads)
	t.Cleanup(proxy.HealDropped)
	proxy.Partition()
	fault := faultOf(t, s, 200*time.Millisecond)
	if !fault.Unknown || !fault.Passing || !errors.Is(fault, errNoReply) {
		t.Errorf("%+v", fault)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close with commands left behind: %v", err)
	}
}

func TestLateGrantIsReported(t *testing.T) {
	s, proxy, direct := behindProxy(t, longReads)
	hints := make(chan [2]string, 2)
	s.OnHint(func(key, token string) { t.Errorf("hint %q %q", key, token) })
	s.OnLateGrant(func(key, token string) { hints <- [2]string{key, token} })
	hold1, hold2, err := bothHeld(t, s, proxy, "SET", takeLong(t, s))
	if fault := asFault(t, err); !fault.Unknown {
		t.Errorf("%+v", fault)
	}
	state{}.check(t, direct)
	hold1()
	if got := receive(t, "a hint", hints); got != [2]string{"k", me1} {
		t.Errorf("hint %v", got)
	}
	state{value: me1, ttl: ttl}.check(t, direct)
	hold2() // finds our own token: a win as well
	receive(t, "another hint", hints)
}

// takeLong returns what takes a key, and waits for that.
func takeLong(t *testing.T, s *syncStore) func() error {
	t.Helper()
	r := request(me1)
	r.Bound = longBound
	return func() error {
		_, err := s.Take(t.Context(), r)
		return err
	}
}

func TestARefusedLateSendIsNotReported(t *testing.T) {
	s, proxy, direct := behindProxy(t, longReads)
	s.OnLateGrant(func(key, token string) { t.Errorf("late grant %q %q", key, token) })
	hold1, hold2, err := bothHeld(t, s, proxy, "SET", takeLong(t, s))
	_ = asFault(t, err)
	state{value: "other", ttl: ttl}.put(t, direct)
	hold1()
	hold2()
	if err := s.Close(t.Context()); err != nil { // both replies are in
		t.Fatal(err)
	}
}

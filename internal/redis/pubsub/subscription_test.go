package pubsub

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// quick is a pace for tests. It leaves slow machines time to answer.
var quick = pace{
	linger:   time.Minute,
	silence:  50 * time.Millisecond,
	answer:   storetest.Patience,
	shortest: 2 * time.Millisecond,
	longest:  20 * time.Millisecond,
	doubt:    time.Second,
}

// impatient is the same for tests in which the server does not answer.
func impatient() pace {
	p := quick
	p.answer = time.Second
	return p
}

func TestACutSubscriptionIsMadeAnewAndHintsAtWhatWasMissed(t *testing.T) {
	s, proxy, direct := behindProxy(t)
	s.listeners.pace = quick
	hints := hintsOf(s)
	ready, stop := s.Listen("k")
	defer stop()
	<-ready
	<-hints
	for range 5 {
		proxy.Cut()
		if got := <-hints; got != (hint{"k", ""}) {
			t.Errorf("hint %v", got)
		}
		suite.Eventually(t, "one connection listens", func() bool { return subscribers(t, direct) == 1 })
	}
	say(t, direct, storetest.Me1+" p:k")
	if got := <-hints; got != (hint{"k", storetest.Me1}) {
		t.Errorf("hint %v", got)
	}
	if n := proxy.Commands()["SUBSCRIBE"]; n != 6 {
		t.Errorf("%d connections were made; has go-redis made some of its own?", n)
	}
}

func TestASilentConnectionIsNoticedAndMadeAnew(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := newStore(t, proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond }))
	s.listeners.pace = impatient()
	hints := hintsOf(s)
	ready, stop := s.Listen("k")
	defer stop()
	<-ready
	<-hints

	proxy.Partition()
	var later <-chan struct{}
	suite.Eventually(t, "the silence is noticed", func() bool {
		again, stop := s.Listen("later")
		if !isReady(again) {
			later = again
			t.Cleanup(stop)
			return true
		}
		stop()
		return false
	})
	proxy.HealDropped()
	<-later
	heard := map[hint]bool{<-hints: true, <-hints: true}
	if !heard[hint{"k", ""}] || !heard[hint{"later", ""}] {
		t.Errorf("hints %v", heard)
	}
	say(t, server.Client(t), storetest.Me1+" p:k")
	if got := <-hints; got != (hint{"k", storetest.Me1}) {
		t.Errorf("hint %v", got)
	}
}

func TestASilentConnectionIsNoticedWithinSeconds(t *testing.T) {
	if p := defaultPace(); p.silence+p.answer > 3*time.Second {
		t.Errorf("noticed after %v", p.silence+p.answer)
	}
}

// A server that has nothing to say is asked, and the connection is kept, also
// where an ACL forbids to ask.
func TestAQuietConnectionIsKept(t *testing.T) {
	for name, rule := range map[string]string{"allowed": "+ping", "forbidden": "-ping"} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			if err := server.Client(t).Do(t.Context(), "acl", "setuser", "default", rule).Err(); err != nil {
				t.Fatal(err)
			}
			proxy := redistest.NewProxy(t, server.Addr())
			s := newStore(t, proxy.Client(t))
			s.listeners.pace = quick
			ready, stop := s.Listen("k")
			defer stop()
			<-ready
			suite.Eventually(t, "five questions", func() bool { return proxy.Commands()["PING"] >= 5 })
			if n := proxy.Commands()["SUBSCRIBE"]; n != 1 {
				t.Errorf("%d connections were made", n)
			}
		})
	}
}

// attempts is a client that tells of each attempt to subscribe.
type attempts struct {
	redis.UniversalClient
	begun chan struct{}
}

func (a attempts) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	select {
	case a.begun <- struct{}{}:
	default:
	}
	return a.UniversalClient.Subscribe(ctx, channels...)
}

func TestCloseWhileItCannotConnect(t *testing.T) {
	server := redistest.Start(t)
	tests := map[string]func(t *testing.T) redis.UniversalClient{
		"refused": func(t *testing.T) redis.UniversalClient {
			t.Helper()
			proxy := redistest.NewProxy(t, server.Addr())
			proxy.Refuse(true)
			return proxy.Client(t)
		},
		"accepted, but never answered": func(t *testing.T) redis.UniversalClient {
			t.Helper()
			proxy := redistest.NewProxy(t, server.Addr())
			proxy.Partition()
			return proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond })
		},
		"a black hole": func(t *testing.T) redis.UniversalClient {
			t.Helper()
			return server.Client(t, func(o *redis.Options) {
				o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
			})
		},
		"a closed client": func(t *testing.T) redis.UniversalClient {
			t.Helper()
			rdb := server.Client(t)
			_ = rdb.Close()
			return rdb
		},
	}
	for name, client := range tests {
		t.Run(name, func(t *testing.T) {
			begun := make(chan struct{}, 1)
			s := newStore(t, attempts{client(t), begun})
			s.listeners.pace = quick
			ready, stop := s.Listen("k")
			defer stop()
			<-begun
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := s.Close(ctx); err != nil || isReady(ready) {
				t.Errorf("%v, ready %v", err, isReady(ready))
			}
		})
	}
}

func TestCloseDoesNotHangBehindADialThatHearsNothing(t *testing.T) {
	server := redistest.Start(t)
	begun, let := make(chan struct{}, 10), make(chan struct{})
	s := newStore(t, server.Client(t, func(o *redis.Options) {
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			begun <- struct{}{}
			<-let
			return nil, errors.New("in vain")
		}
	}))
	_, stop := s.Listen("k")
	defer stop()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v", err)
	}
	_, again := s.Listen("k")
	again()
	close(let)
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("close again: %v", err)
	}
}

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

// quick is a timing for tests. The reply timeout is long, because a busy machine may delay a
// reply for seconds.
var quick = timing{
	linger:       time.Minute,
	pingAfter:    50 * time.Millisecond,
	replyTimeout: storetest.Patience,
	minBackoff:   2 * time.Millisecond,
	maxBackoff:   20 * time.Millisecond,
	settleTime:   time.Second,
}

// quickTimeout is quick with a short reply timeout, for tests in which the server does not
// reply. The timeout tolerates that a busy machine delays other replies by two seconds.
func quickTimeout() timing {
	p := quick
	p.replyTimeout = 2 * time.Second
	return p
}

func TestReconnectHintsAtTheGap(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t)
	s.shared.timing = quick
	hints := hintsOf(s)
	ready, stop := s.Listen("k")
	defer stop()
	suite.AwaitClosed(t, "ready", ready)
	nextHint(t, hints)
	for range 5 {
		proxy.Cut()
		if got := nextHint(t, hints); got != (hint{"k", ""}) {
			t.Errorf("hint %v", got)
		}
		suite.Eventually(t, "one connection is subscribed", func() bool { return subscribers(t, direct) == 1 })
	}
	publish(t, direct, storetest.Me1+" p:k")
	if got := nextHint(t, hints); got != (hint{"k", storetest.Me1}) {
		t.Errorf("hint %v", got)
	}
	if n := proxy.Commands()["SUBSCRIBE"]; n != 6 {
		t.Errorf("%d SUBSCRIBE commands, want 6: go-redis must not reconnect by itself", n)
	}
}

func TestReconnectAfterAReplyTimeout(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := newStore(t, proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond }))
	s.shared.timing = quickTimeout()
	hints := hintsOf(s)
	ready, stop := s.Listen("k")
	defer stop()
	suite.AwaitClosed(t, "ready", ready)
	nextHint(t, hints)

	proxy.Partition()
	var later <-chan struct{}
	suite.Eventually(t, "the connection times out", func() bool {
		again, stop := s.Listen("later")
		if !suite.IsClosed(again) {
			later = again
			t.Cleanup(stop)
			return true
		}
		stop()
		return false
	})
	proxy.HealDropped()
	suite.AwaitClosed(t, "ready", later)
	got := map[hint]bool{nextHint(t, hints): true, nextHint(t, hints): true}
	if !got[hint{"k", ""}] || !got[hint{"later", ""}] {
		t.Errorf("hints %v", got)
	}
	publish(t, server.Client(t), storetest.Me1+" p:k")
	if got := nextHint(t, hints); got != (hint{"k", storetest.Me1}) {
		t.Errorf("hint %v", got)
	}
}

func TestDeadConnectionIsDetectedWithinThreeSeconds(t *testing.T) {
	t.Parallel()
	if p := defaultTiming(); p.pingAfter+p.replyTimeout > 3*time.Second {
		t.Errorf("a dead connection is detected after %v", p.pingAfter+p.replyTimeout)
	}
}

// A connection without messages is pinged and kept, also if an ACL forbids PING.
func TestConnectionWithoutMessagesIsKept(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{"PING allowed": "+ping", "PING forbidden": "-ping"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Reuse(t)
			if err := server.Client(t).Do(t.Context(), "acl", "setuser", "default", rule).Err(); err != nil {
				t.Fatal(err)
			}
			proxy := redistest.NewProxy(t, server.Addr())
			s := newStore(t, proxy.Client(t))
			s.shared.timing = quick
			ready, stop := s.Listen("k")
			defer stop()
			suite.AwaitClosed(t, "ready", ready)
			suite.Eventually(t, "five pings", func() bool { return proxy.Commands()["PING"] >= 5 })
			if n := proxy.Commands()["SUBSCRIBE"]; n != 1 {
				t.Errorf("%d SUBSCRIBE commands, want 1", n)
			}
		})
	}
}

// An attemptSignaler is a client that reports the first attempt to subscribe.
type attemptSignaler struct {
	redis.UniversalClient
	begun chan struct{}
}

func (a attemptSignaler) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	select {
	case a.begun <- struct{}{}:
	default:
	}
	return a.UniversalClient.Subscribe(ctx, channels...)
}

func TestCloseWithoutAConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	tests := map[string]func(t *testing.T) redis.UniversalClient{
		"connections are refused": func(t *testing.T) redis.UniversalClient {
			t.Helper()
			proxy := redistest.NewProxy(t, server.Addr())
			proxy.Refuse(true)
			return proxy.Client(t)
		},
		"connections get no reply": func(t *testing.T) redis.UniversalClient {
			t.Helper()
			proxy := redistest.NewProxy(t, server.Addr())
			proxy.Partition()
			return proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond })
		},
		"dials end with their context": func(t *testing.T) redis.UniversalClient {
			t.Helper()
			return server.Client(t, func(o *redis.Options) {
				o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
			})
		},
		"the client is closed": func(t *testing.T) redis.UniversalClient {
			t.Helper()
			rdb := server.Client(t)
			_ = rdb.Close()
			return rdb
		},
	}
	for name, client := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := make(chan struct{}, 1)
			s := newStore(t, attemptSignaler{client(t), begun})
			s.shared.timing = quick
			ready, stop := s.Listen("k")
			defer stop()
			suite.Receive(t, "an attempt begins", begun)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := s.Close(ctx); err != nil || suite.IsClosed(ready) {
				t.Errorf("%v, ready %v", err, suite.IsClosed(ready))
			}
		})
	}
}

func TestCloseReturnsDuringADialThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	begun, release := make(chan struct{}, 10), make(chan struct{})
	s := newStore(t, server.Client(t, func(o *redis.Options) {
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			begun <- struct{}{}
			<-release
			return nil, errors.New("the dial fails")
		}
	}))
	_, stop := s.Listen("k")
	defer stop()
	suite.Receive(t, "an attempt begins", begun)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
	_, again := s.Listen("k")
	again()
	close(release)
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

package pubsub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
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

func TestSubscriptionEndsAtTheEndOfItsLingerTime(t *testing.T) {
	inBubble(t, func(t *testing.T, s *testStore, _ *network, direct *redis.Client) {
		for range 2 { // the linger time begins at the last stop
			ready, stop := s.Listen("k")
			suite.AwaitClosed(t, "ready", ready)
			stop()
			time.Sleep(defaultTiming().linger - time.Second)
		}
		for _, want := range []int64{1, 0} {
			time.Sleep(time.Second/2 + time.Millisecond)
			synctest.Wait()
			if n := subscribers(t, direct); n != want {
				t.Errorf("%d subscribers, want %d", n, want)
			}
		}
	})
}

// The pauses grow with each failed connection, and are short again after a connection that
// the server confirmed.
func TestBackoffBetweenConnections(t *testing.T) {
	inBubble(t, func(t *testing.T, s *testStore, wire *network, direct *redis.Client) {
		hints := hintsOf(s)
		ready, stop := s.Listen("k")
		defer stop()
		suite.AwaitClosed(t, "ready", ready)
		nextHint(t, hints)
		time.Sleep(time.Minute)
		wire.cut(true)
		time.Sleep(time.Minute)
		// go-redis dials twice in an attempt, because this dialer ignores its context.
		if dials := wire.cut(false); dials < 2*60 || dials > 2*130 {
			t.Errorf("%d dials in a minute, want 120 to 260", dials)
		}
		if got := nextHint(t, hints); got != (hint{"k", ""}) {
			t.Errorf("hint %v", got)
		}
		time.Sleep(time.Minute)
		wire.cut(false)
		begun := time.Now()
		nextHint(t, hints)
		if took := time.Since(begun); took > 25*time.Millisecond {
			t.Errorf("connected %v after a cut, want at most 25ms", took)
		}
		if n := subscribers(t, direct); n != 1 {
			t.Errorf("%d subscribers, want 1", n)
		}
	})
}

// Close returns while the client cannot connect, on one server and in a cluster.
func TestCloseWithoutAConnection(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(proxy *redistest.Proxy, rdb redis.UniversalClient){
		"connections are refused":  func(proxy *redistest.Proxy, _ redis.UniversalClient) { proxy.Refuse(true); proxy.Cut() },
		"connections get no reply": func(proxy *redistest.Proxy, _ redis.UniversalClient) { proxy.Partition() },
		"the client is closed":     func(_ *redistest.Proxy, rdb redis.UniversalClient) { _ = rdb.Close() },
	} {
		for _, isCluster := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, cluster %t", name, isCluster), func(t *testing.T) {
				t.Parallel()
				var s *testStore
				var proxy *redistest.Proxy
				if isCluster {
					s, proxy, _ = shardBehindProxy(t)
					s.sharded.timing = quickTimeout()
				} else {
					s, proxy, _ = behindProxy(t, storetest.ShortReads)
				}
				s.shared.timing = quickTimeout()
				first, stop := s.Listen("k")
				defer stop()
				suite.AwaitClosed(t, "ready", first)
				change(proxy, s.rdb)
				suite.Eventually(t, "the connection has ended, or a new key gets no reply", func() bool {
					again, stop := s.Listen("later")
					defer stop()
					return !suite.IsClosed(again)
				})
				late, stop := s.Listen("late")
				defer stop()
				wasReady := suite.IsClosed(late)
				if err := s.Close(t.Context()); err != nil || suite.IsClosed(late) != wasReady {
					t.Errorf("%v, ready %v", err, suite.IsClosed(late))
				}
			})
		}
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

// go-redis panics if a server replies to SUBSCRIBE by an array that is no message, or sends one
// later. The connection is made anew, and the process lives on. One warning says so.
func TestUnreadableMessageEndsItsConnectionOnly(t *testing.T) {
	t.Parallel()
	odd := []string{
		"*0\r\n", "*1\r\n:1\r\n", "*1\r\n$9\r\nsubscribe\r\n", "*2\r\n$10\r\nssubscribe\r\n$1\r\nc\r\n",
		"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n$1\r\nx\r\n", "*3\r\n$7\r\nmessage\r\n:1\r\n:1\r\n", "*1\r\n$4\r\npong\r\n",
	}
	for name, newClient := range map[string]func(addr string) redis.UniversalClient{
		"subscribe": func(addr string) redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: addr}) },
		"ssubscribe": func(addr string) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
					return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
				},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, err := server.NewServer("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(fake.Close)
			replies := make(chan string, 2*len(odd)+1) // to one subscription after the other
			confirmed := func(name, channel string) string {
				return fmt.Sprintf("*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:1\r\n", len(name), name, len(channel), channel)
			}
			for _, reply := range odd {
				replies <- reply
				replies <- "confirmed " + reply
			}
			replies <- "confirmed "
			if err := fake.Register(strings.ToUpper(name), func(c *server.Peer, _ string, channels []string) {
				reply, isConfirmed := strings.CutPrefix(<-replies, "confirmed ")
				if isConfirmed {
					reply = confirmed(name, channels[0]) + reply
				}
				c.WriteRaw(reply)
			}); err != nil {
				t.Fatal(err)
			}
			rdb := newClient(fake.Addr().String())
			t.Cleanup(func() { _ = rdb.Close() })
			s := newStore(t, rdb)
			s.shared.timing = quick
			if s.sharded != nil {
				s.sharded.timing = quick
			}
			ready, stop := s.Listen("k")
			defer stop()
			suite.Eventually(t, "the last subscription is confirmed", func() bool {
				ready, stop := s.Listen("k")
				defer stop()
				return len(replies) == 0 && suite.IsClosed(ready)
			})
			suite.AwaitClosed(t, "ready", ready)
			if got := suite.Receive(t, "a warning", s.warned); got != errUnreadable { //nolint:errorlint // the very error
				t.Errorf("warned of %v", got)
			}
		})
	}
}

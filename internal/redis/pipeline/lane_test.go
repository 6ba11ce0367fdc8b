package pipeline

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A lane without replies does not delay another lane, and leaves it enough connections of the
// pool.
func TestRenewalsDoNotWaitForTakes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := newStore(t, proxy.Client(t, storetest.LongReads, func(o *redis.Options) { o.PoolSize = 20 }))
	if _, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me1)); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		proxy.DropReply(redistest.Named("SET"), redistest.KeepConn)
	}
	takes := takeKeys(s, 100, storetest.LongBound, 0)
	t.Cleanup(func() {
		expireNow(s)
		proxy.Refuse(true) // Cut would let the client send its commands again
		takes.wait(t)
	})
	resendNow(s) // the proxy drops these replies, too
	begun := time.Now()
	for range 3 {
		r, renewed := storetest.Request(storetest.Me1), make(chan error, 1)
		r.Bound = storetest.LongBound
		s.testStore.Renew(r, func(renewal store.Renewal, err error) {
			if err == nil && !renewal.Held {
				err = errors.New("not held")
			}
			renewed <- err
		})
		if err := suite.Receive(t, "a renewal", renewed); err != nil {
			t.Errorf("renew: %v", err)
		}
	}
	// A lane of renewals and takes would abandon the takes after half of the bound, and renew then.
	if took := time.Since(begun); took > storetest.Patience {
		t.Errorf("the renewals took %v", took)
	}
	if n := len(takes.done); n > 0 {
		t.Errorf("%d takes were answered", n)
	}
}

// Commands that wait for a silent server do not open a connection each.
func TestSilentServerGetsFewConnections(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	proxy := redistest.NewProxy(t, server.Addr())
	var dials atomic.Int64
	rdb := proxy.Client(t, storetest.ShortReads, func(o *redis.Options) {
		o.PoolSize = 1000 // so large that the pool does not limit the connections
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	s := newStore(t, rdb)
	t.Cleanup(proxy.HealDropped) // Close waits for the batches in flight
	proxy.Partition()
	takes := takeKeys(s, 200, 500*time.Millisecond, time.Millisecond)
	takes.wait(t)
	for i, err := range takes.errs {
		if !errors.Is(err, command.ErrNoReply) && !command.IsTransport(err) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if n := dials.Load(); n > 100 { // about ten, and more on a busy machine
		t.Errorf("%d connections for 200 commands", n)
	}
}

func TestCloseWaitsForQueuedCalls(t *testing.T) {
	t.Parallel()
	s, proxy, _ := behindProxy(t)
	release := holdTake(t, proxy, s)
	takes := takeKeys(s, 300, 5*time.Second, 0)
	closed := make(chan error, 1)
	go func() { closed <- s.Close(context.Background()) }()
	release()
	if err := suite.Receive(t, "Close returns", closed); err != nil {
		t.Fatal(err)
	}
	for range takes.answers {
		select {
		case i := <-takes.done:
			if takes.errs[i] != nil {
				t.Errorf("%d: %v", i, takes.errs[i])
			}
		default:
			t.Fatal("closed before all calls were answered")
		}
	}
}

// A lease counts from the send of the command that granted it: not from the call, and not from the
// reply.
func TestReplyCarriesTimeOfSend(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		send func(f *fake, c *fakeCall) *fakeBatch // returns the batch that is answered
		want time.Duration                         // when the batch is sent
	}{
		"alone": {func(f *fake, c *fakeCall) *fakeBatch {
			f.Do(&c.Call, Acquire)
			return f.next(0, "c")
		}, 0},
		"inline": {func(f *fake, c *fakeCall) *fakeBatch {
			f.makeFast()
			b, _ := f.doInline(c)
			return b
		}, 0},
		"behind another batch": {func(f *fake, c *fakeCall) *fakeBatch {
			f.send("first", time.Second)
			first := f.next(0, "first")
			f.Do(&c.Call, Acquire)
			f.sleepUntil(100 * ms)
			first.reply("ok")
			return f.next(100*ms, "c")
		}, 100 * ms},
		"sent again": {func(f *fake, c *fakeCall) *fakeBatch {
			f.Do(&c.Call, Acquire)
			f.next(0, "c")
			return f.next(500*ms, "again c")
		}, 500 * ms},
		"another command, because the first reply does not decide": {func(f *fake, c *fakeCall) *fakeBatch {
			c.fallback = true
			f.Do(&c.Call, Acquire)
			b := f.next(0, "c")
			f.sleepUntil(100 * ms)
			b.reply("fallback")
			return f.next(100*ms, "fallback c")
		}, 100 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
				c := f.call("c", time.Second)
				b := test.send(f, c)
				answered := f.elapsed() + 5*ms
				f.sleepUntil(answered)
				b.reply("ok")
				if got := c.wantReply(answered, "ok"); got.Sent.Sub(f.begun) != test.want {
					t.Errorf("the reply says that it was sent at %v, want %v", got.Sent.Sub(f.begun), test.want)
				}
			})
		})
	}
}

// An idle lane and a cleared call keep no references to commands and replies, which may be
// big.
func TestIdleLaneKeepsNoReferences(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Reuse(t).Client(t))
	for range 3 {
		if _, err := s.Take(t.Context(), storetest.Request(storetest.Me1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, l := range s.pipeline.all() {
		if b := l.spare; b != nil && (len(b.sends)+len(b.cmds)+len(b.completions) > 0) {
			t.Errorf("an idle lane keeps %d sends", len(b.sends))
		}
	}
	x := &Call{}
	x.firstSend = send{call: x, command: command.New(1, []any{"get", "k"}), reply: Reply{Value: "big"}}
	x.Clear()
	if x.firstSend != (send{}) {
		t.Errorf("a cleared call keeps %+v", x.firstSend)
	}
}

// A batch that waits for replicas never runs inline.
func TestReplicaLanesNeverRunInline(t *testing.T) {
	t.Parallel()
	s := &testStore{}
	p := New(redistest.Reuse(t).Client(t, storetest.Deadlines), &s.work, command.Replicas{Count: 1, Timeout: time.Second}, Width)
	for class, want := range map[Class]bool{Acquire: false, Renew: false, Begin: false, Commit: false, Release: true, Abort: true} {
		if l := p.of(class, true); l.canRunInline != want || l.acknowledged == want {
			t.Errorf("class %d: can run inline: %v, waits for replicas: %v", class, l.canRunInline, l.acknowledged)
		}
	}
}

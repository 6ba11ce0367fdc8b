package pubsub

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// inBubble runs the test in a bubble of testing/synctest, with a store behind a
// wire in memory, and a client that is not.
func inBubble(t *testing.T, test func(t *testing.T, s *syncStore, w *wires, direct *redis.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := miniredis.NewMiniRedis()
		t.Cleanup(server.Close)
		w := &wires{server: server}
		direct := pipeClient(t, func(context.Context, string, string) (net.Conn, error) { return server.Dial() })
		test(t, newStore(t, pipeClient(t, w.dial)), w, direct)
	})
}

// pipeClient returns a client in which nothing ticks.
func pipeClient(t *testing.T, dial func(context.Context, string, string) (net.Conn, error)) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Dialer:                   dial,
		MaxRetries:               -1,
		ReadTimeout:              -2,
		WriteTimeout:             -2,
		ConnMaxIdleTime:          -1,
		PoolSize:                 1000,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// wires are the connections of a client.
type wires struct {
	server *miniredis.Miniredis
	mu     sync.Mutex
	conns  []net.Conn
	down   bool
	dials  int
}

func (w *wires) dial(context.Context, string, string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dials++
	if w.down {
		return nil, errors.New("down")
	}
	conn, err := w.server.Dial()
	w.conns = append(w.conns, conn)
	return conn, err
}

// cut cuts all connections, and new ones fail if it is for long. It returns how
// many were tried since the last cut.
func (w *wires) cut(down bool) (dials int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		_ = conn.Close()
	}
	dials, w.dials = w.dials, 0
	w.conns, w.down = nil, down
	return dials
}

func TestListenInABubble(t *testing.T) {
	inBubble(t, func(t *testing.T, s *syncStore, w *wires, direct *redis.Client) {
		hints := hintsOf(s)
		ready, stop := s.Listen("k")
		<-ready
		<-hints
		time.Sleep(time.Minute)
		say(t, direct, storetest.Me1+" p:k")
		if got := <-hints; got != (hint{"k", storetest.Me1}) {
			t.Errorf("hint %v", got)
		}
		if dials := w.cut(false); dials != 1 {
			t.Errorf("a minute took %d connections", dials)
		}
		if got := <-hints; got != (hint{"k", ""}) {
			t.Errorf("hint %v", got)
		}
		stop()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		late, _ := s.Listen("k")
		synctest.Wait()
		if n := subscribers(t, direct); n != 0 || isReady(late) {
			t.Errorf("after close %d listen", n)
		}
	})
}

func TestTheLingerIsKeptToTheMoment(t *testing.T) {
	inBubble(t, func(t *testing.T, s *syncStore, _ *wires, direct *redis.Client) {
		for range 2 { // it counts from the last stop
			ready, stop := s.Listen("k")
			<-ready
			stop()
			time.Sleep(defaultPace().linger - time.Second)
		}
		for _, want := range []int64{1, 0} {
			time.Sleep(time.Second/2 + time.Millisecond)
			synctest.Wait()
			if n := subscribers(t, direct); n != want {
				t.Errorf("%d listen, want %d", n, want)
			}
		}
	})
}

// The pauses between attempts grow while they fail, and are short again after
// a connection that held.
func TestTheServerIsNotStormed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *syncStore, w *wires, direct *redis.Client) {
		hints := hintsOf(s)
		ready, stop := s.Listen("k")
		defer stop()
		<-ready
		<-hints
		time.Sleep(time.Minute)
		w.cut(true)
		time.Sleep(time.Minute)
		// go-redis dials twice in an attempt where the dialer ignores its context.
		if dials := w.cut(false); dials < 2*60 || dials > 2*130 {
			t.Errorf("%d attempts in a minute, want about one a second", dials)
		}
		if got := <-hints; got != (hint{"k", ""}) {
			t.Errorf("hint %v", got)
		}
		time.Sleep(time.Minute)
		w.cut(false)
		begun := time.Now()
		<-hints
		if took := time.Since(begun); took > 25*time.Millisecond {
			t.Errorf("connected %v after a single cut", took)
		}
		if n := subscribers(t, direct); n != 1 {
			t.Errorf("%d listen", n)
		}
	})
}

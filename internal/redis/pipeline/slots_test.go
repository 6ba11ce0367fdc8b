package pipeline

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// newStoreWithSlots returns a store whose client takes one server, reached through a proxy,
// for a cluster, and has its table from a function.
func newStoreWithSlots(t *testing.T, table func() error) (s *syncStore, proxy *redistest.Proxy) {
	t.Helper()
	proxy = redistest.NewProxy(t, redistest.Start(t).Addr())
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterStateReloadInterval: time.Hour, // it never asks by itself
		DialerRetries:              1,
		ReadTimeout:                storetest.LongBound,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			if err := table(); err != nil {
				return nil, err
			}
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: proxy.Addr()}}}}, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return newStore(t, rdb), proxy
}

// If the slots cannot be loaded, each send tries once, and the call fails with the reason.
func TestNothingIsSentWithoutSlots(t *testing.T) {
	t.Parallel()
	why := errors.New("no node answers")
	asked := make(chan struct{}, 100)
	s, proxy := newStoreWithSlots(t, func() error { asked <- struct{}{}; return why })
	_, err := s.Take(t.Context(), storetest.Request(storetest.Me1))
	var fault *store.Fault
	if !errors.As(err, &fault) || !fault.Temporary || fault.Unknown || !errors.Is(err, why) {
		t.Errorf("%+v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := len(asked); n != 2 { // it is sent twice
		t.Errorf("the table is asked for %d times", n)
	}
	if n := proxy.Commands()["SET"]; n != 0 {
		t.Errorf("%d commands are sent", n)
	}
}

// A call that expires while the client loads the slots is not sent. A call that another
// batch has taken over is sent once.
func TestAbandonedBatchSendsNothingAfterLoadingSlots(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		bound   time.Duration
		asks    int // for the table, until it comes
		granted bool
		sent    int
	}{
		"given up":   {bound: 20 * time.Millisecond, asks: 1},
		"taken over": {bound: 4 * time.Second, asks: 2, granted: true, sent: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, let := make(chan struct{}, 100), make(chan struct{})
			s, proxy := newStoreWithSlots(t, func() error { asked <- struct{}{}; <-let; return nil })
			r, answered := storetest.Request(storetest.Me1), make(chan result, 1)
			r.Bound = test.bound
			s.testStore.Take(r, func(answer store.Answer, err error) { answered <- result{answer, err} })
			for range test.asks {
				storetest.Receive(t, "the table is asked for", asked)
			}
			if !test.granted {
				if got := storetest.Receive(t, "it is given up", answered); !errors.Is(got.err, command.ErrNoReply) {
					t.Errorf("%+v", got)
				}
			}
			close(let)
			if test.granted {
				if got := storetest.Receive(t, "it is granted", answered); got.err != nil || !got.answer.Granted {
					t.Errorf("%+v", got)
				}
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if n := proxy.Commands()["SET"]; n != test.sent {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

// A master that does not answer may have lost its role. The client does not find out by
// itself, whether the master is gone or silent.
func TestSlotsAreReloadedWhenMasterDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"it is gone": false, "it says nothing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 100)
			s, proxy := newStoreWithSlots(t, func() error { asked <- struct{}{}; return nil })
			known := storetest.Request(storetest.Me1)
			known.Key = "known"
			if got, err := s.Take(t.Context(), known); err != nil || !got.Granted {
				t.Fatalf("%+v, %v", got, err)
			}
			storetest.Receive(t, "the table is asked for at first", asked)
			let, held := proxy.HoldCommand(redistest.Named("SET"))
			t.Cleanup(let)
			proxy.Refuse(!silent)
			r, answered := storetest.Request(storetest.Me1), make(chan struct{}, 1)
			r.Bound = storetest.LongBound
			s.testStore.Take(r, func(store.Answer, error) { answered <- struct{}{} })
			if silent { // and nothing fails
				storetest.Receive(t, "it is sent", held)
				resendNow(s)
			}
			storetest.Receive(t, "the table is asked for again", asked)
			proxy.Refuse(false)
			let()
			storetest.Receive(t, "an answer", answered)
		})
	}
}

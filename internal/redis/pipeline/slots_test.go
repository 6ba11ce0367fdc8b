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
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// newStoreWithSlots returns a store whose client treats one server behind a proxy as a
// cluster. The client loads the slots when table returns nil.
func newStoreWithSlots(t *testing.T, table func() error) (s *syncStore, proxy *redistest.Proxy) {
	t.Helper()
	proxy = redistest.NewProxy(t, redistest.Reuse(t).Addr())
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterStateReloadInterval: time.Hour, // longer than the test
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
	noSlots := errors.New("no node answers")
	loads := make(chan struct{}, 100)
	s, proxy := newStoreWithSlots(t, func() error { loads <- struct{}{}; return noSlots })
	_, err := s.Take(t.Context(), storetest.Request(storetest.Me1))
	var fault *store.Fault
	if !errors.As(err, &fault) || !fault.Temporary || fault.Unknown || !errors.Is(err, noSlots) {
		t.Errorf("%+v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := len(loads); n != 2 { // one for each send of the call
		t.Errorf("the client loaded the slots %d times, want 2", n)
	}
	if n := proxy.Commands()["SET"]; n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

// A call that expires while the client loads the slots is not sent. A call that another
// batch has taken over is sent once.
func TestAbandonedBatchSendsNothingAfterLoadingSlots(t *testing.T) {
	t.Parallel()
	for name, wantSends := range map[string]int{"the call expires": 0, "the call is sent again": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loading, release := make(chan struct{}, 100), make(chan struct{})
			s, proxy := newStoreWithSlots(t, func() error { loading <- struct{}{}; <-release; return nil })
			r, answered := storetest.Request(storetest.Me1), make(chan result, 1)
			r.Bound = storetest.LongBound
			s.testStore.Take(r, func(answer store.Answer, err error) { answered <- result{answer, err} })
			suite.Receive(t, "the first batch loads the slots", loading)
			if wantSends == 0 {
				expireNow(s)
				if got := suite.Receive(t, "the call expires", answered); !errors.Is(got.err, command.ErrNoReply) {
					t.Errorf("%+v", got)
				}
				close(release)
			} else {
				resendNow(s)
				suite.Receive(t, "the second batch loads the slots", loading)
				close(release)
				if got := suite.Receive(t, "the call is granted", answered); got.err != nil || !got.answer.Granted {
					t.Errorf("%+v", got)
				}
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if n := proxy.Commands()["SET"]; n != wantSends {
				t.Errorf("the call was sent %d times, want %d", n, wantSends)
			}
		})
	}
}

// A master that does not answer may have been replaced. The client does not notice that by
// itself.
func TestSlotsAreReloadedWhenMasterDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, isSilent := range map[string]bool{"connections refused": false, "no replies": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loads := make(chan struct{}, 100)
			s, proxy := newStoreWithSlots(t, func() error { loads <- struct{}{}; return nil })
			first := storetest.Request(storetest.Me1)
			first.Key = "first"
			if got, err := s.Take(t.Context(), first); err != nil || !got.Granted {
				t.Fatalf("%+v, %v", got, err)
			}
			suite.Receive(t, "the client loads the slots", loads)
			release, held := proxy.HoldCommand(redistest.Named("SET"))
			t.Cleanup(release)
			proxy.Refuse(!isSilent)
			r, answered := storetest.Request(storetest.Me1), make(chan struct{}, 1)
			r.Bound = storetest.LongBound
			s.testStore.Take(r, func(store.Answer, error) { answered <- struct{}{} })
			if isSilent {
				suite.Receive(t, "the command is held", held)
				resendNow(s)
			}
			suite.Receive(t, "the client loads the slots again", loads)
			proxy.Refuse(false)
			release()
			suite.Receive(t, "the call is answered", answered)
		})
	}
}

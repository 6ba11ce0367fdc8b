package pubsub

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Whoever listens holds a mutex, so nothing that the client does may hold him up.
func TestListenDoesNotWaitForTheTableOfSlots(t *testing.T) {
	cluster := redistest.StartCluster(t)
	slots := cluster.Nodes()[0].Client(t).ClusterSlots //nolint:staticcheck // what clients of a cluster ask as well
	table := func(ctx context.Context) ([]redis.ClusterSlot, error) { return slots(ctx).Result() }
	tests := map[string]func(o *redis.ClusterOptions, begun chan<- struct{}, let <-chan struct{}){
		"a dial that hangs": func(o *redis.ClusterOptions, begun chan<- struct{}, let <-chan struct{}) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				begun <- struct{}{}
				<-let
				var dialer net.Dialer
				return dialer.DialContext(ctx, network, addr)
			}
		},
		"a table of the application's own, which hangs": func(o *redis.ClusterOptions, begun chan<- struct{}, let <-chan struct{}) {
			o.ClusterSlots = func(ctx context.Context) ([]redis.ClusterSlot, error) {
				begun <- struct{}{}
				<-let
				return table(ctx)
			}
		},
		"a table that fails at first": func(o *redis.ClusterOptions, begun chan<- struct{}, let <-chan struct{}) {
			failures := 0
			o.ClusterSlots = func(ctx context.Context) ([]redis.ClusterSlot, error) {
				if failures++; failures <= 3 {
					return nil, errors.New("in vain")
				}
				begun <- struct{}{}
				<-let
				return table(ctx)
			}
		},
	}
	for name, configure := range tests {
		for _, closes := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				begun, let := make(chan struct{}, 100), make(chan struct{})
				s := newStore(t, cluster.Client(t, func(o *redis.ClusterOptions) { configure(o, begun, let) }))
				s.sharded.pace.shortest = quick.shortest
				hints := hintsOf(s)
				first, stop := s.Listen("k")
				defer stop()
				<-begun
				second, stopSecond := s.Listen("other")
				defer stopSecond()
				if isReady(first) || isReady(second) {
					t.Error("ready without a table")
				}
				if closes {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
					defer cancel()
					if err := s.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("close: %v", err)
					}
					close(let)
					if err := s.Close(t.Context()); err != nil || isReady(first) {
						t.Errorf("close again: %v, ready %v", err, isReady(first))
					}
					return
				}
				close(let)
				awaitReady(t, first)
				awaitReady(t, second)
				for range 2 {
					if got := <-hints; got.token != "" {
						t.Errorf("hint %v", got)
					}
				}
			})
		}
	}
}

func TestCloseWhileNoNodeIsThere(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	proxy.Refuse(true)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{proxy.Addr()}})
	t.Cleanup(func() { _ = rdb.Close() })
	s := newStore(t, rdb)
	ready, stop := s.Listen("k")
	defer stop()
	if err := s.Close(t.Context()); err != nil || isReady(ready) {
		t.Errorf("%v, ready %v", err, isReady(ready))
	}
}

func TestCloseAfterTheClient(t *testing.T) {
	cluster := redistest.StartCluster(t)
	w := newShardWorld(t, cluster)
	w.listen(t, "k")
	if err := w.rdb.Close(); err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, "the end is noticed", func() bool {
		again, stop := w.mine.Listen("k")
		stop()
		return !isReady(again)
	})
	if err := w.mine.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

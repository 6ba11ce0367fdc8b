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

// A caller of Listen may hold a mutex, so Listen must not wait for the client.
func testListenDoesNotWaitForTheSlotTable(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	slots := cluster.Nodes()[0].Client(t).ClusterSlots //nolint:staticcheck // go-redis calls it, too
	table := func(ctx context.Context) ([]redis.ClusterSlot, error) { return slots(ctx).Result() }
	tests := map[string]func(o *redis.ClusterOptions, begun chan<- struct{}, release <-chan struct{}){
		"a dial that hangs": func(o *redis.ClusterOptions, begun chan<- struct{}, release <-chan struct{}) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				begun <- struct{}{}
				<-release
				var dialer net.Dialer
				return dialer.DialContext(ctx, network, addr)
			}
		},
		"an option ClusterSlots that hangs": func(o *redis.ClusterOptions, begun chan<- struct{}, release <-chan struct{}) {
			o.ClusterSlots = func(ctx context.Context) ([]redis.ClusterSlot, error) {
				begun <- struct{}{}
				<-release
				return table(ctx)
			}
		},
		"an option ClusterSlots that fails at first": func(o *redis.ClusterOptions, begun chan<- struct{}, release <-chan struct{}) {
			failures := 0
			o.ClusterSlots = func(ctx context.Context) ([]redis.ClusterSlot, error) {
				if failures++; failures <= 3 {
					return nil, errors.New("no slot table")
				}
				begun <- struct{}{}
				<-release
				return table(ctx)
			}
		},
	}
	for name, configure := range tests {
		for _, closes := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				begun, release := make(chan struct{}, 100), make(chan struct{})
				s := newStore(t, cluster.Client(t, func(o *redis.ClusterOptions) { configure(o, begun, release) }))
				s.sharded.timing.minBackoff = quick.minBackoff
				hints := hintsOf(s)
				first, stop := s.Listen("k")
				defer stop()
				suite.Receive(t, "an attempt begins", begun)
				second, stopSecond := s.Listen("other")
				defer stopSecond()
				if suite.IsClosed(first) || suite.IsClosed(second) {
					t.Error("ready without a slot table")
				}
				if closes {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
					defer cancel()
					if err := s.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Close: %v", err)
					}
					close(release)
					if err := s.Close(t.Context()); err != nil || suite.IsClosed(first) {
						t.Errorf("second Close: %v, ready %v", err, suite.IsClosed(first))
					}
					return
				}
				close(release)
				suite.AwaitClosed(t, "ready", first)
				suite.AwaitClosed(t, "ready", second)
				for range 2 {
					if got := nextHint(t, hints); got.token != "" {
						t.Errorf("hint %v", got)
					}
				}
			})
		}
	}
}

func TestCloseWhileAllNodesRefuseConnections(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Reuse(t).Addr())
	proxy.Refuse(true)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{proxy.Addr()}})
	t.Cleanup(func() { _ = rdb.Close() })
	s := newStore(t, rdb)
	ready, stop := s.Listen("k")
	defer stop()
	if err := s.Close(t.Context()); err != nil || suite.IsClosed(ready) {
		t.Errorf("%v, ready %v", err, suite.IsClosed(ready))
	}
}

func testCloseAfterTheClientWasClosed(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	c := newClusterTest(t, cluster)
	c.listen(t, "k")
	if err := c.rdb.Close(); err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, "the subscription has ended", func() bool {
		again, stop := c.me.Listen("k")
		stop()
		return !suite.IsClosed(again)
	})
	if err := c.me.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

package pipeline

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// An inline take returns during each fault of the master of its key. Its command is answered
// after the fault.
func testInlineCallerReturnsInEachClusterFault(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	master := cluster.MasterOf("p:warm")
	pause := func(nodes ...*redistest.Server) (end func()) {
		for _, node := range nodes {
			node.Pause()
		}
		return func() {
			for _, node := range nodes {
				node.Resume()
			}
		}
	}
	for name, test := range map[string]struct {
		configure func(*redis.ClusterOptions)
		begin     func(t *testing.T, hangs *atomic.Bool) (end func())
	}{
		"master paused": {
			begin: func(*testing.T, *atomic.Bool) func() { return pause(master) },
		},
		"all nodes paused": {
			begin: func(*testing.T, *atomic.Bool) func() { return pause(cluster.Nodes()...) },
		},
		"master paused, one connection": {
			configure: func(o *redis.ClusterOptions) { o.PoolSize = 1 },
			begin:     func(*testing.T, *atomic.Bool) func() { return pause(master) },
		},
		"connections closed, dials hang": {
			begin: func(t *testing.T, hangs *atomic.Bool) func() {
				t.Helper()
				hangs.Store(true)
				if err := master.Client(t).ClientKillByFilter(t.Context(), "type", "normal").Err(); err != nil {
					t.Fatal(err)
				}
				return func() { hangs.Store(false) }
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var hangs, ranInline atomic.Bool
			release := make(chan struct{}) // the dials that hang
			rdb := cluster.Client(t, func(o *redis.ClusterOptions) {
				o.ContextTimeoutEnabled = true
				o.ReadTimeout, o.DialTimeout = storetest.LongBound, storetest.LongBound
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if hangs.Load() {
						select {
						case <-ctx.Done():
							return nil, ctx.Err()
						case <-release:
						}
					}
					return new(net.Dialer).DialContext(ctx, network, addr)
				}
				if test.configure != nil {
					test.configure(o)
				}
			})
			rdb.AddHook(storetest.BeforeEach{Before: func(ctx context.Context) { ranInline.CompareAndSwap(false, isInline(ctx)) }})
			s := newStore(t, rdb)
			makeFast(t, s)
			ranInline.Store(false)
			end := test.begin(t, &hangs)
			took, answered := takeInline(s, inline("warm"))
			early := len(answered)
			end()
			close(release)
			if !ranInline.Load() {
				t.Error("the caller did not run the batch inline")
			}
			if took > storetest.Patience {
				t.Errorf("Take returned after %v", took)
			}
			if early > 0 {
				t.Error("answered during the fault")
			}
			if got := suite.Receive(t, "an answer", answered); got.err != nil || !got.answer.Granted {
				t.Errorf("%+v", got)
			}
		})
	}
}

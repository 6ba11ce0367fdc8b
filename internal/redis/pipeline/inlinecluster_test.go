package pipeline

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// In a cluster an inline take returns in each fault of the master of its key, and its
// command is answered when the fault is over.
func TestInlineCallerReturnsInEachClusterFault(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	master := cluster.MasterOf("p:warm")
	pause := func(nodes ...*redistest.Server) (over func()) {
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
		begin     func(t *testing.T, hangs *atomic.Bool) (over func())
	}{
		"its master stands still": {
			begin: func(*testing.T, *atomic.Bool) func() { return pause(master) },
		},
		"all nodes stand still": {
			begin: func(*testing.T, *atomic.Bool) func() { return pause(cluster.Nodes()...) },
		},
		"its master stands still, and there is one connection": {
			configure: func(o *redis.ClusterOptions) { o.PoolSize = 1 },
			begin:     func(*testing.T, *atomic.Bool) func() { return pause(master) },
		},
		"its connections are cut, and new ones hang": {
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
			let := make(chan struct{}) // what hangs
			rdb := cluster.Client(t, func(o *redis.ClusterOptions) {
				o.ContextTimeoutEnabled = true
				o.ReadTimeout, o.DialTimeout = storetest.LongBound, storetest.LongBound
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if hangs.Load() {
						select {
						case <-ctx.Done():
							return nil, ctx.Err()
						case <-let:
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
			over := test.begin(t, &hangs)
			kept, answered := takeInline(s, inline("warm"))
			early := len(answered)
			over()
			close(let)
			if !ranInline.Load() {
				t.Error("it does not run inline")
			}
			if kept > storetest.Patience {
				t.Errorf("kept for %v", kept)
			}
			if early > 0 {
				t.Error("answered amid the fault")
			}
			if got := storetest.Receive(t, "an answer", answered); got.err != nil || !got.answer.Granted {
				t.Errorf("%+v", got)
			}
		})
	}
}

package pipeline

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The subtests are serial, because they share one cluster, and some pause its nodes. Each
// uses keys of its own.
func TestLanesOfMasters(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *redistest.Cluster)
	}{
		{"a silent master delays no call for another master", testSilentMaster},
		{"a master that is silent from the start delays no call for another master", testMasterSilentFromTheStart},
		{"calls are answered before the slots are known", testCallsBeforeSlotsAreKnown},
		{"lanes of former masters are removed", testLanesOfFormerMasters},
		{"a closed client is not a temporary fault", testClosedClient},
		{"each command reaches its master", testCommandsReachTheirMaster},
		{"a lone caller runs inline", testLoneCallerRunsInlineInCluster},
		{"an inline caller returns in each fault", testInlineCallerReturnsInEachClusterFault},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, cluster) })
	}
}

func testCommandsReachTheirMaster(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	rdb := cluster.Client(t)
	s := newStore(t, rdb)
	const workers, rounds = 8, 15
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := range rounds {
				r := storetest.Request(fmt.Sprintf("%s:%d", storetest.Me, w*rounds+i))
				r.Key, r.Inline, r.NoWaiters = fmt.Sprint("key", w), i%2 == 0, i%3 == 0
				do := s.Take
				if i%5 == 0 {
					do, r.Fences = s.Enqueue, i%10
				}
				got, err := do(t.Context(), r)
				if err != nil || !got.Granted {
					t.Errorf("%+v, %v", got, err)
				}
				if v := rdb.Get(t.Context(), "p:"+r.Key).Val(); v != r.Token {
					t.Errorf("%s: %q, want %q", r.Key, v, r.Token)
				}
				other := r
				other.Token = storetest.Eve1
				if got, err := s.Take(t.Context(), other); err != nil || got.Holder != r.Token {
					t.Errorf("a take of a held key: %+v, %v", got, err)
				}
				if renewal, err := s.Renew(t.Context(), r); err != nil || !renewal.Held {
					t.Errorf("renew: %+v, %v", renewal, err)
				}
				if released, err := s.Release(t.Context(), r); err != nil || released.Status != store.Freed {
					t.Errorf("release: %+v, %v", released, err)
				}
			}
		})
	}
	group.Wait()
	if got := len(s.pipeline.masters); got != 3 {
		t.Errorf("%d masters have lanes, want 3", got)
	}
}

// A lone caller runs inline, and returns while the master of its key is paused. The client
// sends COMMAND to no node.
func testLoneCallerRunsInlineInCluster(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	rdb := cluster.Client(t, storetest.SlowClusterReads, func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled = true })
	var ranInline, sentCommand atomic.Bool
	rdb.AddHook(storetest.BeforeEach{Before: func(ctx context.Context) { ranInline.CompareAndSwap(false, isInline(ctx)) }})
	rdb.OnNewNode(func(node *redis.Client) {
		node.AddHook(storetest.EachCommand(func(cmd redis.Cmder) { sentCommand.CompareAndSwap(false, cmd.Name() == "command") }))
	})
	s := newStore(t, rdb)
	makeFast(t, s)
	_, answered := takeInline(s, inline("warm"))
	if got := suite.Receive(t, "the take is answered", answered); got.err != nil || !got.answer.Granted || !ranInline.Load() {
		t.Errorf("%+v, inline: %v", got, ranInline.Load())
	}
	master := cluster.MasterOf("p:warm")
	makeFast(t, s) // the last batch may have been slow on a busy machine
	ranInline.Store(false)
	master.Pause()
	took, answered := takeInline(s, inline("warm"))
	master.Resume()
	if !ranInline.Load() || took > storetest.Patience {
		t.Errorf("inline: %v, Take returned after %v", ranInline.Load(), took)
	}
	if got := suite.Receive(t, "the take is answered", answered); got.err != nil || !got.answer.Granted {
		t.Errorf("%+v", got)
	}
	if sentCommand.Load() {
		t.Error("the client sent COMMAND")
	}
}

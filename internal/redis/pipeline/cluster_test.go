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
)

// The cluster's client finds the key of each command, alone and in a batch, and each
// command is sent by the lanes of its master.
func TestClusterCommandsReachTheirMaster(t *testing.T) {
	t.Parallel()
	rdb := redistest.StartCluster(t).Client(t)
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
				q := r
				q.Token = storetest.Eve1
				if got, err := s.Take(t.Context(), q); err != nil || got.Holder != r.Token {
					t.Errorf("refused: %+v, %v", got, err)
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
		t.Errorf("%d masters have lanes of their own", got)
	}
}

// A lone caller runs inline in a cluster too, and returns if its master stops answering.
// The client sends no COMMAND to any node.
func TestLoneCallerRunsInlineInCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	rdb := cluster.Client(t, storetest.SlowClusterReads, func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled = true })
	var ranInline, sentCommand atomic.Bool
	rdb.AddHook(storetest.BeforeEach{Before: func(ctx context.Context) { ranInline.CompareAndSwap(false, isInline(ctx)) }})
	rdb.OnNewNode(func(node *redis.Client) {
		node.AddHook(storetest.EachCommand(func(cmd redis.Cmder) { sentCommand.CompareAndSwap(false, cmd.Name() == "command") }))
	})
	s := newStore(t, rdb)
	makeFast(t, s)
	_, answered := takeInline(s, inline("warm"))
	if got := <-answered; got.err != nil || !got.answer.Granted || !ranInline.Load() {
		t.Errorf("%+v, inline: %v", got, ranInline.Load())
	}
	master := cluster.MasterOf("p:warm")
	makeFast(t, s) // the last batch may have been slow on a busy machine
	ranInline.Store(false)
	master.Pause()
	kept, answered := takeInline(s, inline("warm"))
	master.Resume()
	if !ranInline.Load() || kept > storetest.Patience {
		t.Errorf("inline: %v, kept for %v", ranInline.Load(), kept)
	}
	if got := <-answered; got.err != nil || !got.answer.Granted {
		t.Errorf("%+v", got)
	}
	if sentCommand.Load() {
		t.Error("a node was asked for its commands")
	}
}

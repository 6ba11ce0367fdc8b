package redisstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The lease of each transition counts from the send of its command, not from the reply. Which
// time that is, is tested in package pipeline.
func TestLeaseCountsFromSend(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do     transition
		before string
	}{
		"take": {take, ""}, "enqueue": {enqueue, "A1 ttl"}, "begin": {begin(), "A1 ttl"}, "renew": {renew, "A1 ttl"}, "kept": {rejoin, "A1 ttl"},
		"shared":       {asking(permit), "shared ttl | | | A1/2=ttl"},
		"renew shared": {renewing(permit), "shared ttl | | | A1/2=ttl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, proxy, direct := behindProxy(t)
			for range 2 { // the server loads the scripts
				stateOf(test.before).Put(t, direct)
				test.do.run(t, s)
			}
			stateOf(test.before).Put(t, direct)
			release, seen := proxy.HoldCommand(redistest.Named("SET", "EVALSHA"))
			ended, begun := make(chan error, 1), time.Now()
			go func() {
				_, err := test.do(t, s)
				ended <- err
			}()
			suite.AwaitClosed(t, "the command is sent", seen)
			sent := time.Now()
			release()
			if err := suite.Receive(t, "the lease", ended); err != nil {
				t.Fatal(err)
			}
			if s.since.Before(begun) || s.since.After(sent) {
				t.Errorf("the lease counts from %v after the call, which was sent after %v", s.since.Sub(begun), sent.Sub(begun))
			}
		})
	}
}

// A renewal and a release use another lane than takes, so they do not wait for one that
// has no reply.
func TestRenewalAndReleaseDoNotWaitForTake(t *testing.T) {
	t.Parallel()
	s, proxy, _ := behindProxy(t, storetest.LongReads)
	if _, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me1)); err != nil {
		t.Fatal(err)
	}
	held, seen := proxy.HoldCommand(redistest.Named("SET"))
	taken := make(chan error, 1)
	r := storetest.Request(storetest.Me2)
	r.Key, r.Bound = "other", storetest.LongBound
	s.Store.Take(r.Take(), func(_ store.Answer, err error) { taken <- err })
	suite.Receive(t, "the take is held", seen)
	r = storetest.Request(storetest.Me1)
	r.Bound = storetest.LongBound
	renewed, released := make(chan error, 1), make(chan error, 1)
	s.Store.Renew(r.Renew(), func(_ store.Renewal, err error) { renewed <- err })
	if err := suite.Receive(t, "a renewal", renewed); err != nil {
		t.Error(err)
	}
	s.Store.Release(r.Release(), func(_ store.ReleaseResult, err error) { released <- err })
	if err := suite.Receive(t, "a release", released); err != nil {
		t.Error(err)
	}
	if len(taken) > 0 {
		t.Error("the take was not held")
	}
	held()
	if err := suite.Receive(t, "the take", taken); err != nil {
		t.Error(err)
	}
}

// A request with Inline may be sent on the goroutine of its caller. The context of such a send has
// a deadline.
func TestInlineTakeRunsOnCaller(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t, storetest.Deadlines)
	var inline atomic.Bool
	rdb.AddHook(storetest.BeforeEach{Before: func(ctx context.Context) {
		_, hasDeadline := ctx.Deadline()
		inline.Store(hasDeadline)
	}})
	s := newStore(t, rdb)
	r := storetest.Request(storetest.Me1)
	r.Inline, r.Bound = true, storetest.LongBound
	// The first takes are not inline, because the server must have been fast before.
	suite.Eventually(t, "a take runs on its caller", func() bool {
		r.Key += "k"
		if _, err := s.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return inline.Load()
	})
	r.Key, r.Inline = "other", false
	if _, err := s.Take(t.Context(), r); err != nil || inline.Load() {
		t.Errorf("a take without Inline runs inline: %v, %v", inline.Load(), err)
	}
}

// Commits with big records are split into several batches, because the replies would be late.
func TestCommitsWithBigRecordsAreSplit(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Reuse(t).Addr())
	rdb := proxy.Client(t, storetest.ShortReads)
	s := newStore(t, rdb)
	var mu sync.Mutex
	var sizes []int
	rdb.AddHook(pipelineSizes(func(n int) {
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, n)
	}))
	release, held := proxy.HoldCommand(onLock("p:first"))
	t.Cleanup(release)
	over := make(chan error, 6)
	commit := func(key string, record []byte) {
		r := storetest.AttemptRequest(storetest.Me1)
		r.Key, r.Ending, r.Record = key, store.EndCommit, record
		s.Store.Release(r.Release(), func(_ store.ReleaseResult, err error) { over <- err })
	}
	commit("first", nil)
	suite.AwaitClosed(t, "the first commit is held", held)
	for i := range 5 {
		commit(fmt.Sprint("big", i), make([]byte, 512<<10))
	}
	release()
	for range 6 {
		if err := suite.Receive(t, "each commit is answered", over); err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(sizes) == 0 {
		t.Error("no batch was sent")
	}
	for _, n := range sizes {
		if n > 3 { // two big records, and a script that was not loaded
			t.Errorf("batches of %v", sizes)
		}
	}
}

// pipelineSizes is a hook that is called with the number of commands of each pipeline.
type pipelineSizes func(n int)

func (pipelineSizes) DialHook(next redis.DialHook) redis.DialHook { return next }

func (pipelineSizes) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h pipelineSizes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h(len(cmds))
		return next(ctx, cmds)
	}
}

// Each form of a command names its key, so that a cluster's client sends it to the right
// node, alone and in a batch.
func TestClusterCommandsReachTheirNode(t *testing.T) {
	t.Parallel()
	rdb, prefix := redistest.Shared(t, redistest.OnCluster).Client(t), redistest.OwnPrefix()
	s := newStore(t, rdb)
	const workers, rounds = 8, 15
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := range rounds {
				r := storetest.Request(fmt.Sprintf("%s:%d", storetest.Me, w*rounds+i))
				r.Key, r.Inline, r.NoWaiters = fmt.Sprint(prefix, w), i%2 == 0, i%3 == 0
				do := s.Take
				if i%5 == 0 {
					do, r.Fences = s.Enqueue, i%10
				}
				if got, err := do(t.Context(), r); err != nil || !got.Granted {
					t.Errorf("%+v, %v", got, err)
				}
				if value := rdb.Get(t.Context(), "p:"+r.Key).Val(); value != r.Token {
					t.Errorf("%s: %q, want %q", r.Key, value, r.Token)
				}
				other := r
				other.Token = storetest.Eve1
				if got, err := s.Take(t.Context(), other); err != nil || got.Holder != r.Token {
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
}

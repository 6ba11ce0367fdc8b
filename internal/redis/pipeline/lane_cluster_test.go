package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
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
		{"calls are answered before the slots are known", testCallsBeforeSlotsAreKnown},
		{"a closed client is not a temporary fault", testClosedClient},
		{"a lone caller runs inline", testLoneCallerRunsInlineInCluster},
		{"an inline caller returns in each fault", testInlineCallerReturnsInEachClusterFault},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, cluster) })
	}
}

// A lone caller runs inline. The client sends COMMAND to no node.
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
	s.mustTake(inline("warm"))
	if !ranInline.Load() || sentCommand.Load() {
		t.Errorf("inline: %v, the client sent COMMAND: %v", ranInline.Load(), sentCommand.Load())
	}
}

// Calls whose masters are unknown are answered, and later calls use the lanes of the masters.
func testCallsBeforeSlotsAreKnown(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	tokens := &storetest.Tokens{Last: 3000}
	s := newStore(t, storetest.NewClusterProxies(t, cluster).Client(t))
	var requests []storetest.AnyRequest
	var answers []<-chan Reply
	for i := range 60 {
		requests = append(requests, tokens.Request(fmt.Sprint("first", i)))
		answers = append(answers, s.take(requests[i]))
	}
	for i, r := range requests {
		if got := suite.Receive(t, "each take is answered", answers[i]); !isGranted(got, r) {
			t.Errorf("%+v", got)
		}
	}
	for _, tag := range storetest.TagsOf(t, cluster) {
		s.mustTake(tokens.Request(tag + "later"))
	}
	if got := len(s.pipeline.masters); got != 3 {
		t.Errorf("%d masters have lanes, want 3", got)
	}
}

func testClosedClient(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	for _, slotsKnown := range []bool{false, true} {
		tokens, rdb := &storetest.Tokens{Last: 4000}, storetest.NewClusterProxies(t, cluster).Client(t)
		s := newStore(t, rdb)
		if slotsKnown {
			s.mustTake(tokens.Request("closed"))
		}
		if err := rdb.Close(); err != nil {
			t.Fatal(err)
		}
		got := suite.Receive(t, "the take is answered", s.take(tokens.Request("closed")))
		if command.NewFault(got.Err, false).Temporary || !errors.Is(got.Err, redis.ErrClosed) {
			t.Errorf("slots known: %v: %+v", slotsKnown, got)
		}
	}
}

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
			if got := suite.Receive(t, "an answer", answered); !isGranted(got, inline("warm")) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A lone caller and many callers are answered as soon as a replica has replaced the master,
// although the client would not load the slots by itself.
func TestKeysWorkAgainAfterFailover(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct{ begin, end func(*redistest.Server) }{
		"killed": {(*redistest.Server).Kill, (*redistest.Server).Restart},
		"paused": {(*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "paused" {
				suite.Full(t, "repeats the test with another failure")
			}
			cluster := redistest.StartCluster(t)
			master, tokens := cluster.Masters()[0], &storetest.Tokens{}
			tag := storetest.TagsOf(t, cluster)[master]
			lone, shared := newStore(t, cluster.Client(t, withoutReloads)), newStore(t, cluster.Client(t, withoutReloads))
			lone.mustTake(tokens.Request(tokens.Next())) // the client loads the slots
			shared.mustTake(tokens.Request(tokens.Next()))
			const callers = 40
			ofLone, ofShared := make(chan error, 1), make(chan error, callers)
			fault.begin(master)
			go func() { ofLone <- takeThroughFaults(lone, tokens.Request(tag+"lone")) }()
			for i := range callers {
				go func() { ofShared <- takeThroughFaults(shared, tokens.Request(fmt.Sprint(tag, i))) }()
			}
			cluster.AwaitFailover(master)
			over := time.Now()
			if err := suite.Receive(t, "the answer to the lone caller", ofLone); err != nil {
				t.Error(err)
			}
			for range callers {
				if err := suite.Receive(t, "the answers to all callers", ofShared); err != nil {
					t.Error(err)
				}
			}
			t.Logf("all callers are answered %v after the failover", time.Since(over).Round(time.Millisecond))
			fault.end(master)
		})
	}
}

// withoutReloads makes a client load the slots again only if the pipeline asks for it. A load
// from a paused node ends after the read timeout.
func withoutReloads(o *redis.ClusterOptions) {
	o.ClusterStateReloadInterval = time.Hour
	o.ReadTimeout = 500 * time.Millisecond
}

// takeThroughFaults takes a key, and tries again after each temporary fault.
func takeThroughFaults(s *takeStore, r storetest.AnyRequest) error {
	r.Bound = 500 * time.Millisecond
	for deadline := time.Now().Add(3 * storetest.Patience); ; {
		got := <-s.take(r)
		if got.Err == nil || !command.NewFault(got.Err, false).Temporary || time.Now().After(deadline) {
			return got.Err
		}
	}
}

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// TestLanesOfMasters shares one cluster among its tests.
func TestLanesOfMasters(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *redistest.Cluster)
	}{
		{"a silent master delays no call for another", testSilentMaster},
		{"a silent master delays no first call for another", testMasterSilentFromTheStart},
		{"the first commands come before the slots are known", testFirstCommands},
		{"masters that are gone are forgotten", testGoneMasters},
		{"a client that is closed is no passing fault", testClosedClient},
		{"after a failover the keys work again", testAfterFailover},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, cluster) })
	}
}

// A transition is a transition that leaves on one of the lanes.
type transition struct {
	name    string
	prepare func(s *syncStore, r storetest.AnyRequest) error // what has to be so before
	do      func(s *syncStore, r storetest.AnyRequest) error
}

// errUnexpected says that a transition was answered, but not as it should be.
var errUnexpected = errors.New("another answer")

// expect returns err, or that it was answered otherwise.
func expect(is bool, err error) error {
	if err == nil && !is {
		err = errUnexpected
	}
	return err
}

func take(s *syncStore, r storetest.AnyRequest) error {
	got, err := s.Take(context.Background(), r)
	return expect(got.Granted, err)
}

func begins(s *syncStore, r storetest.AnyRequest) error {
	r.Attempt = storetest.AttemptRequest(r.Token).Attempt
	got, err := s.Enqueue(context.Background(), r)
	return expect(got.Granted, err)
}

// transitions are transitions of all lanes.
func transitions() []transition {
	none := func(*syncStore, storetest.AnyRequest) error { return nil }
	return []transition{
		{"take", none, take},
		{"renew", take, func(s *syncStore, r storetest.AnyRequest) error {
			got, err := s.Renew(context.Background(), r)
			return expect(got.Held, err)
		}},
		{"release", take, func(s *syncStore, r storetest.AnyRequest) error {
			got, err := s.Release(context.Background(), r)
			return expect(got.Status == store.Freed, err)
		}},
		{"begin", none, begins},
		{"finish", begins, func(s *syncStore, r storetest.AnyRequest) error {
			r.Attempt, r.Ending, r.Record = storetest.AttemptRequest(r.Token).Attempt, store.Commit, []byte(storetest.Record)
			got, err := s.Release(context.Background(), r)
			return expect(got.Status == store.Freed && got.Record == store.WasStored, err)
		}},
	}
}

// Commands for a master that is silent wait for it alone: those for the others
// come and go meanwhile, on each of the lanes.
func testSilentMaster(t *testing.T, cluster *redistest.Cluster) {
	const stuck, others = 8, 20
	for _, use := range transitions() {
		t.Run(use.name, func(t *testing.T) {
			proxies, tokens := storetest.NewClusterProxies(t, cluster), &storetest.Tokens{Last: 1000}
			s := newStore(t, proxies.Client(t, storetest.SlowClusterReads))
			silent, requests := cluster.Masters()[0], make(map[*redistest.Server][]storetest.AnyRequest)
			for master, tag := range storetest.TagsOf(t, cluster) {
				for i := range stuck + others {
					r := tokens.Request(fmt.Sprint(tag, use.name, i))
					r.Bound = storetest.LongBound
					if err := use.prepare(s, r); err != nil {
						t.Fatal(err)
					}
					requests[master] = append(requests[master], r)
				}
			}

			if err := take(s, tokens.Request(use.name)); err != nil { // it knows where the slots are
				t.Fatal(err)
			}
			proxies.To(silent).Partition()
			t.Cleanup(proxies.To(silent).Heal)
			var answered atomic.Int64
			var waiting sync.WaitGroup
			for _, r := range requests[silent][:stuck] {
				waiting.Go(func() {
					if err := use.do(s, r); err != nil {
						t.Errorf("%s on the silent master: %v", use.name, err)
					}
					answered.Add(1)
				})
			}
			for master, all := range requests {
				if master == silent {
					continue
				}
				for _, r := range all[:others] {
					done := make(chan error, 1)
					go func() { done <- use.do(s, r) }()
					if err := storetest.Receive(t, "an answer of another master", done); err != nil {
						t.Errorf("%s on another master: %v", use.name, err)
					}
				}
			}
			if n := answered.Load(); n != 0 {
				t.Errorf("%d of the silent master were answered", n)
			}
			proxies.To(silent).Heal()
			waiting.Wait()
		})
	}
}

// The same holds where the first command of all is for the silent master.
func testMasterSilentFromTheStart(t *testing.T, cluster *redistest.Cluster) {
	proxies, tokens := storetest.NewClusterProxies(t, cluster), &storetest.Tokens{Last: 2000}
	s := newStore(t, proxies.Client(t, storetest.SlowClusterReads))
	tags, silent := storetest.TagsOf(t, cluster), cluster.Masters()[0]
	held, seen := proxies.To(silent).HoldCommand(redistest.Named("SET"))
	t.Cleanup(held)
	stuck := make(chan error, 1)
	first := tokens.Request(tags[silent] + "start")
	first.Bound = storetest.LongBound
	go func() { stuck <- take(s, first) }()
	storetest.Receive(t, "the first command is on its way", seen)
	for master, tag := range tags {
		if master == silent {
			continue
		}
		for i := range 4 {
			r, done := tokens.Request(fmt.Sprint(tag, "start", i)), make(chan error, 1)
			r.Bound = storetest.LongBound
			go func() { done <- take(s, r) }()
			if err := storetest.Receive(t, "an answer of another master", done); err != nil {
				t.Error(err)
			}
		}
	}
	if len(stuck) != 0 {
		t.Error("the silent master has answered")
	}
	held()
	if err := storetest.Receive(t, "the first answer", stuck); err != nil {
		t.Error(err)
	}
}

// Whatever comes before the client knows where the slots are, is answered rightly.
func testFirstCommands(t *testing.T, cluster *redistest.Cluster) {
	tokens := &storetest.Tokens{Last: 3000}
	for range 5 {
		s := newStore(t, storetest.NewClusterProxies(t, cluster).Client(t))
		var group sync.WaitGroup
		for i := range 60 {
			r := tokens.Request(fmt.Sprint("first", i, tokens.Next()))
			group.Go(func() {
				if err := take(s, r); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if got := len(s.pipeline.masters); got > 3 {
			t.Errorf("%d masters have lanes", got)
		}
	}
}

// A client that its owner has closed will not come back.
func testClosedClient(t *testing.T, cluster *redistest.Cluster) {
	for _, loaded := range []bool{false, true} {
		t.Run(fmt.Sprint("slots known: ", loaded), func(t *testing.T) {
			tokens, rdb := &storetest.Tokens{Last: 4000}, storetest.NewClusterProxies(t, cluster).Client(t)
			s := newStore(t, rdb)
			if loaded {
				if err := take(s, tokens.Request("closed")); err != nil {
					t.Fatal(err)
				}
			}
			if err := rdb.Close(); err != nil {
				t.Fatal(err)
			}
			var group sync.WaitGroup
			for i := range 8 {
				r := tokens.Request(fmt.Sprint("closed", i))
				group.Go(func() {
					var fault *store.Fault
					if err := take(s, r); !errors.As(err, &fault) || fault.Temporary || !errors.Is(err, redis.ErrClosed) {
						t.Errorf("%+v", err)
					}
				})
			}
			group.Wait()
		})
	}
}

// After a master has died or stood still its keys work as soon as another has
// taken over, although the client would not ask by itself: for a lone caller, and
// for many.
func testAfterFailover(t *testing.T, cluster *redistest.Cluster) {
	for _, fault := range []struct {
		name string
		end  func(*redistest.Server) (back func())
	}{
		{"it was killed", func(s *redistest.Server) func() { s.Kill(); return s.Restart }},
		{"it stands still", func(s *redistest.Server) func() { s.Pause(); return s.Resume }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			cluster.Await()
			gone, tokens := cluster.Masters()[0], &storetest.Tokens{Last: 5000}
			tag := storetest.TagsOf(t, cluster)[gone]
			const callers = 40
			many := make(chan error, callers)
			lone := make(chan error, 1)
			again := func(s *syncStore, key string, answered chan<- error) {
				r := tokens.Request(tag + fault.name + key)
				r.Bound = 500 * time.Millisecond
				for deadline := time.Now().Add(3 * storetest.Patience); ; {
					err := take(s, r)
					var is *store.Fault
					if !errors.As(err, &is) || !is.Temporary || time.Now().After(deadline) {
						answered <- err
						return
					}
				}
			}
			one, all := newStore(t, cluster.Client(t, never)), newStore(t, cluster.Client(t, never))
			for _, s := range []*syncStore{one, all} {
				if err := take(s, tokens.Request(tokens.Next())); err != nil { // they know where the slots are
					t.Fatal(err)
				}
			}
			back := fault.end(gone)
			go again(one, "lone", lone)
			for i := range callers {
				go again(all, fmt.Sprint(i), many)
			}
			cluster.AwaitFailover(gone)
			over := time.Now()
			if err := storetest.Receive(t, "the lone caller is served", lone); err != nil {
				t.Error(err)
			}
			for range callers {
				if err := storetest.Receive(t, "all callers are served", many); err != nil {
					t.Error(err)
				}
			}
			t.Logf("all are served %v after the failover", time.Since(over).Round(time.Millisecond))
			back()
			cluster.Await()
		})
	}
}

// never keeps the client from asking by itself where the slots are.
func never(o *redis.ClusterOptions) { o.ClusterStateReloadInterval = time.Hour }

// Masters that come and go do not pile up: once there are many, those are forgotten
// for which there is nothing to do.
func testGoneMasters(t *testing.T, cluster *redistest.Cluster) {
	tokens := &storetest.Tokens{Last: 6000}
	s := newStore(t, storetest.NewClusterProxies(t, cluster).Client(t))
	tags := storetest.TagsOf(t, cluster)
	use := func() {
		for _, tag := range tags {
			if err := take(s, tokens.Request(tag+tokens.Next())); err != nil {
				t.Error(err)
			}
		}
	}
	use() // the slots are known
	busy := &lanes{}
	s.pipeline.init(busy)
	busy.begins.calls = append(busy.begins.calls, &Call{})
	for i := range 10 * minMasters {
		s.pipeline.mu.Lock()
		s.pipeline.evictIdle()
		gone := &lanes{}
		s.pipeline.init(gone)
		s.pipeline.masters[fmt.Sprint("gone:", i)] = gone
		if i == 0 {
			s.pipeline.masters["busy"] = busy
		}
		if len(s.pipeline.masters) > minMasters+1 {
			t.Errorf("%d masters are remembered", len(s.pipeline.masters))
		}
		s.pipeline.mu.Unlock()
	}
	use()
	s.pipeline.mu.Lock()
	defer s.pipeline.mu.Unlock()
	if s.pipeline.masters["busy"] != busy {
		t.Error("a master is forgotten for which something is under way")
	}
	if len(s.pipeline.masters) > minMasters+len(tags) {
		t.Errorf("%d masters are remembered", len(s.pipeline.masters))
	}
}

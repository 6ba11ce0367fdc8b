package redisstore

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
)

// TestRoutes shares one cluster among its tests.
func TestRoutes(t *testing.T) {
	cluster := redistest.StartCluster(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *redistest.Cluster)
	}{
		{"a silent master holds up nobody who waits for another", silentMaster},
		{"a silent master holds up nobody in a new process", silentFromTheStart},
		{"the first commands come before the slots are known", firstCommands},
		{"masters that are gone are forgotten", goneMasters},
		{"a client that is closed is no passing fault", closedClient},
		{"after a failover the keys work again", afterFailover},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, cluster) })
	}
}

// patience is after how long what does not happen is taken for never; bounds of
// commands that are not to end by themselves are longer than twice that.
const (
	patience  = 10 * time.Second
	longBound = 3 * patience
)

// slowReads keeps the client from ending a command by itself.
func slowReads(o *redis.ClusterOptions) { o.ReadTimeout = longBound }

// A laneUse is a transition that leaves on one of the lanes.
type laneUse struct {
	name    string
	prepare func(s *syncStore, r store.Request) error // what has to be so before
	do      func(s *syncStore, r store.Request) error
}

// errNotSo says that a transition was answered, but not as it should be.
var errNotSo = errors.New("another answer")

// answeredSo returns err, or that it was answered otherwise.
func answeredSo(is bool, err error) error {
	if err == nil && !is {
		err = errNotSo
	}
	return err
}

func takes(s *syncStore, r store.Request) error {
	got, err := s.Take(context.Background(), r)
	return answeredSo(got.Granted, err)
}

func begins(s *syncStore, r store.Request) error {
	r.Attempt = attempt(r.Token).Attempt
	got, err := s.Enqueue(context.Background(), r)
	return answeredSo(got.Granted, err)
}

// laneUses are transitions of all lanes.
func laneUses() []laneUse {
	none := func(*syncStore, store.Request) error { return nil }
	return []laneUse{
		{"take", none, takes},
		{"renew", takes, func(s *syncStore, r store.Request) error {
			got, err := s.Renew(context.Background(), r)
			return answeredSo(got.Held, err)
		}},
		{"release", takes, func(s *syncStore, r store.Request) error {
			got, err := s.Release(context.Background(), r)
			return answeredSo(got.End == store.Freed, err)
		}},
		{"begin", none, begins},
		{"finish", begins, func(s *syncStore, r store.Request) error {
			r.Attempt, r.Ending, r.Record = attempt(r.Token).Attempt, store.Commit, []byte(theAnswer)
			got, err := s.Release(context.Background(), r)
			return answeredSo(got.End == store.Freed && got.Stored == store.WasStored, err)
		}},
	}
}

// receive waits for what must come in time.
func receive[T any](t *testing.T, what string, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(patience):
		t.Fatalf("not so in time: %s", what)
	}
	return got
}

// Commands for a master that is silent wait for it alone: those for the others
// come and go meanwhile, on each of the lanes.
func silentMaster(t *testing.T, cluster *redistest.Cluster) {
	const stuck, others = 8, 20
	for _, use := range laneUses() {
		t.Run(use.name, func(t *testing.T) {
			roads, tokens := newRoads(t, cluster), &serial{n: 1000}
			s := newStore(t, roads.client(t, slowReads))
			silent, requests := cluster.Masters()[0], make(map[*redistest.Server][]store.Request)
			for master, tag := range tagsOf(t, cluster) {
				for i := range stuck + others {
					r := tokens.request(fmt.Sprint(tag, use.name, i))
					r.Bound = longBound
					if err := use.prepare(s, r); err != nil {
						t.Fatal(err)
					}
					requests[master] = append(requests[master], r)
				}
			}

			if err := takes(s, tokens.request(use.name)); err != nil { // it knows where the slots are
				t.Fatal(err)
			}
			roads.to(silent).Partition()
			t.Cleanup(roads.to(silent).Heal)
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
					if err := receive(t, "an answer of another master", done); err != nil {
						t.Errorf("%s on another master: %v", use.name, err)
					}
				}
			}
			if n := answered.Load(); n != 0 {
				t.Errorf("%d of the silent master were answered", n)
			}
			roads.to(silent).Heal()
			waiting.Wait()
		})
	}
}

// The same holds where the first command of all is for the silent master.
func silentFromTheStart(t *testing.T, cluster *redistest.Cluster) {
	roads, tokens := newRoads(t, cluster), &serial{n: 2000}
	s := newStore(t, roads.client(t, slowReads))
	tags, silent := tagsOf(t, cluster), cluster.Masters()[0]
	held, seen := roads.to(silent).HoldCommand(redistest.Named("SET"))
	t.Cleanup(held)
	stuck := make(chan error, 1)
	first := tokens.request(tags[silent] + "start")
	first.Bound = longBound
	go func() { stuck <- takes(s, first) }()
	receive(t, "the first command is on its way", seen)
	for master, tag := range tags {
		if master == silent {
			continue
		}
		for i := range 4 {
			r, done := tokens.request(fmt.Sprint(tag, "start", i)), make(chan error, 1)
			r.Bound = longBound
			go func() { done <- takes(s, r) }()
			if err := receive(t, "an answer of another master", done); err != nil {
				t.Error(err)
			}
		}
	}
	if len(stuck) != 0 {
		t.Error("the silent master has answered")
	}
	held()
	if err := receive(t, "the first answer", stuck); err != nil {
		t.Error(err)
	}
}

// Whatever comes before the client knows where the slots are, is answered rightly.
func firstCommands(t *testing.T, cluster *redistest.Cluster) {
	tokens := &serial{n: 3000}
	for range 5 {
		s := newStore(t, newRoads(t, cluster).client(t))
		var group sync.WaitGroup
		for i := range 60 {
			r := tokens.request(fmt.Sprint("first", i, tokens.token()))
			group.Go(func() {
				if err := takes(s, r); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if got := len(s.masters); got > 3 {
			t.Errorf("%d masters have lanes", got)
		}
	}
}

// A client that its owner has closed will not come back.
func closedClient(t *testing.T, cluster *redistest.Cluster) {
	for _, loaded := range []bool{false, true} {
		t.Run(fmt.Sprint("slots known: ", loaded), func(t *testing.T) {
			tokens, rdb := &serial{n: 4000}, newRoads(t, cluster).client(t)
			s := newStore(t, rdb)
			if loaded {
				if err := takes(s, tokens.request("closed")); err != nil {
					t.Fatal(err)
				}
			}
			if err := rdb.Close(); err != nil {
				t.Fatal(err)
			}
			var group sync.WaitGroup
			for i := range 8 {
				r := tokens.request(fmt.Sprint("closed", i))
				group.Go(func() {
					var fault *store.Fault
					if err := takes(s, r); !errors.As(err, &fault) || fault.Passing || !errors.Is(err, redis.ErrClosed) {
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
func afterFailover(t *testing.T, cluster *redistest.Cluster) {
	for _, fault := range []struct {
		name string
		end  func(*redistest.Server) (back func())
	}{
		{"it was killed", func(s *redistest.Server) func() { s.Kill(); return s.Restart }},
		{"it stands still", func(s *redistest.Server) func() { s.Pause(); return s.Resume }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			cluster.Await()
			gone, tokens := cluster.Masters()[0], &serial{n: 5000}
			tag := tagsOf(t, cluster)[gone]
			const callers = 40
			many := make(chan error, callers)
			lone := make(chan error, 1)
			again := func(s *syncStore, key string, answered chan<- error) {
				r := tokens.request(tag + fault.name + key)
				r.Bound = 500 * time.Millisecond
				for deadline := time.Now().Add(3 * patience); ; {
					err := takes(s, r)
					var is *store.Fault
					if !errors.As(err, &is) || !is.Passing || time.Now().After(deadline) {
						answered <- err
						return
					}
				}
			}
			one, all := newStore(t, cluster.Client(t, never)), newStore(t, cluster.Client(t, never))
			for _, s := range []*syncStore{one, all} {
				if err := takes(s, tokens.request(tokens.token())); err != nil { // they know where the slots are
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
			if err := receive(t, "the lone caller is served", lone); err != nil {
				t.Error(err)
			}
			for range callers {
				if err := receive(t, "all callers are served", many); err != nil {
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
func goneMasters(t *testing.T, cluster *redistest.Cluster) {
	tokens := &serial{n: 6000}
	s := newStore(t, newRoads(t, cluster).client(t))
	tags := tagsOf(t, cluster)
	use := func() {
		for _, tag := range tags {
			if err := takes(s, tokens.request(tag+tokens.token())); err != nil {
				t.Error(err)
			}
		}
	}
	use() // the slots are known
	busy := &lanes{}
	s.pave(busy)
	busy.begins.exchanges = append(busy.begins.exchanges, &call{})
	for i := range 10 * leastRoom {
		s.mu.Lock()
		s.makeRoom()
		gone := &lanes{}
		s.pave(gone)
		s.masters[fmt.Sprint("gone:", i)] = gone
		if i == 0 {
			s.masters["busy"] = busy
		}
		if len(s.masters) > leastRoom+1 {
			t.Errorf("%d masters are remembered", len(s.masters))
		}
		s.mu.Unlock()
	}
	use()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.masters["busy"] != busy {
		t.Error("a master is forgotten for which something is under way")
	}
	if len(s.masters) > leastRoom+len(tags) {
		t.Errorf("%d masters are remembered", len(s.masters))
	}
}

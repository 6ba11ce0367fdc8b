package pipeline

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func testCallsBeforeSlotsAreKnown(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
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

func testClosedClient(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	for _, slotsKnown := range []bool{false, true} {
		t.Run(fmt.Sprint("slots known: ", slotsKnown), func(t *testing.T) {
			tokens, rdb := &storetest.Tokens{Last: 4000}, storetest.NewClusterProxies(t, cluster).Client(t)
			s := newStore(t, rdb)
			if slotsKnown {
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

// If there are lanes for many masters, the pipeline removes those without calls.
func testLanesOfFormerMasters(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	tokens := &storetest.Tokens{Last: 6000}
	s := newStore(t, storetest.NewClusterProxies(t, cluster).Client(t))
	tags := storetest.TagsOf(t, cluster)
	takeFromEachMaster := func() {
		for _, tag := range tags {
			if err := take(s, tokens.Request(tag+tokens.Next())); err != nil {
				t.Error(err)
			}
		}
	}
	takeFromEachMaster() // the client loads the slots
	busy := &lanes{}
	s.pipeline.init(busy)
	busy.begins.calls.put(&Call{}, time.Now())
	for i := range 10 * minMasters {
		s.pipeline.mu.Lock()
		s.pipeline.evictIdle()
		former := &lanes{}
		s.pipeline.init(former)
		s.pipeline.masters[fmt.Sprint("former:", i)] = former
		if i == 0 {
			s.pipeline.masters["busy"] = busy
		}
		if len(s.pipeline.masters) > minMasters+1 {
			t.Errorf("%d masters have lanes", len(s.pipeline.masters))
		}
		s.pipeline.mu.Unlock()
	}
	takeFromEachMaster()
	s.pipeline.mu.Lock()
	defer s.pipeline.mu.Unlock()
	if s.pipeline.masters["busy"] != busy {
		t.Error("the lanes of a master with a call were removed")
	}
	if len(s.pipeline.masters) > minMasters+len(tags) {
		t.Errorf("%d masters have lanes", len(s.pipeline.masters))
	}
}

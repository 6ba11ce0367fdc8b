package redisstore

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The two kinds of wrappers around a client: a wrapper that hides what it wraps, and a wrapper
// that embeds the client of a cluster.
type (
	opaqueWrapper  struct{ redis.UniversalClient }
	clusterWrapper struct{ *redis.ClusterClient }
)

// A wrapped client of a cluster subscribes on any node. A waiter that listens there must not
// be skipped.
func TestWaiterBehindWrappedClusterClientIsHandedTheKey(t *testing.T) {
	t.Parallel()
	connect := func(t *testing.T) *redis.ClusterClient {
		t.Helper()
		return redistest.Shared(t, redistest.OnCluster).Client(t).(*redis.ClusterClient)
	}
	t.Run("both wrapped opaquely", func(t *testing.T) {
		t.Parallel()
		mustHandOver(t, newStore(t, opaqueWrapper{connect(t)}), newStoreOf(t, opaqueWrapper{connect(t)}, storetest.Bob))
	})
	t.Run("the waiter's client embedded", func(t *testing.T) {
		t.Parallel()
		mustHandOver(t, newStore(t, clusterWrapper{connect(t)}), newStoreOf(t, connect(t), storetest.Bob))
	})
	t.Run("the holder's client embedded", func(t *testing.T) {
		t.Parallel()
		mustHandOver(t, newStore(t, connect(t)), newStoreOf(t, clusterWrapper{connect(t)}, storetest.Bob))
	})
}

// mustHandOver fails the test unless some keys are handed over from one process to another.
func mustHandOver(t *testing.T, waiter, holder *syncStore) {
	t.Helper()
	prefix := redistest.OwnPrefix()
	for i := range 6 {
		held, waits := storetest.Request(storetest.Bob1), storetest.Request(storetest.Me1)
		held.Key = fmt.Sprint(prefix, i)
		waits.Key = held.Key
		ready, stop := waiter.Listen(held.Key)
		defer stop()
		suite.AwaitClosed(t, "the subscription is confirmed", ready)
		if got, err := holder.Enqueue(t.Context(), held); err != nil || !got.Granted {
			t.Fatalf("%+v, %v", got, err)
		}
		if got, err := waiter.Enqueue(t.Context(), waits); err != nil || got.Granted {
			t.Fatalf("%+v, %v", got, err)
		}
		if got, err := holder.Release(t.Context(), held); err != nil || got.Status != store.Handed {
			t.Errorf("%s is not handed over: %+v, %v", held.Key, got, err)
		}
	}
}

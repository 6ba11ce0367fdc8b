package redisstore

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A wrapper may be of a kind that nobody can know, or embed a client.
type (
	opaque  struct{ redis.UniversalClient }
	cluster struct{ *redis.ClusterClient }
)

// A waiter that listens is not passed over because the client of a cluster is
// wrapped, wherever its subscription happens to be.
func TestAWaiterBehindAWrappedClusterClientIsHandedTheKey(t *testing.T) {
	servers := redistest.StartCluster(t)
	t.Run("opaque", func(t *testing.T) {
		handsOver(t, "a", newStore(t, opaque{servers.Client(t)}), newStoreOf(t, opaque{servers.Client(t)}, storetest.Bob))
	})
	t.Run("embedding, beside one that is not wrapped", func(t *testing.T) {
		handsOver(t, "b", newStore(t, cluster{servers.Client(t)}), newStoreOf(t, servers.Client(t), storetest.Bob))
	})
	t.Run("not wrapped, beside one that embeds", func(t *testing.T) {
		handsOver(t, "c", newStore(t, servers.Client(t)), newStoreOf(t, cluster{servers.Client(t)}, storetest.Bob))
	})
}

func handsOver(t *testing.T, keys string, mine, bobs *syncStore) {
	t.Helper()
	for i := range 6 {
		held, waits := storetest.Request(storetest.Bob1), storetest.Request(storetest.Me1)
		held.Key = fmt.Sprint(keys, i)
		waits.Key = held.Key
		ready, stop := mine.Listen(held.Key)
		defer stop()
		awaitReady(t, ready)
		if got, err := bobs.Enqueue(t.Context(), held); err != nil || !got.Granted {
			t.Fatalf("%+v, %v", got, err)
		}
		if got, err := mine.Enqueue(t.Context(), waits); err != nil || got.Granted {
			t.Fatalf("%+v, %v", got, err)
		}
		if got, err := bobs.Release(t.Context(), held); err != nil || got.Status != store.Handed {
			t.Errorf("%s is not handed over: %+v, %v", held.Key, got, err)
		}
	}
}

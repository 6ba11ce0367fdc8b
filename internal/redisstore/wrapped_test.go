package redisstore

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redistest"
	"github.com/reqlock/reqlock/internal/store"
)

// wrapped is a client of a kind that nobody can know, such as one that traces.
type wrapped struct{ redis.UniversalClient }

// A waiter that listens is not passed over because the client of a cluster is
// wrapped, wherever its subscription happens to be.
func TestAWaiterBehindAWrappedClusterClientIsHandedTheKey(t *testing.T) {
	cluster := redistest.StartCluster(t)
	mine, bobs := newStore(t, wrapped{cluster.Client(t)}), newStoreOf(t, wrapped{cluster.Client(t)}, bob)
	for i := range 6 {
		held, waits := request(bob1), request(me1)
		held.Key = fmt.Sprint("k", i)
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
		if got, err := bobs.Release(t.Context(), held); err != nil || got.End != store.Handed {
			t.Errorf("%s is not handed over: %+v, %v", held.Key, got, err)
		}
	}
}

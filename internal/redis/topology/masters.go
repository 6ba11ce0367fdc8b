package topology

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Masters returns the servers that have keys: the server, or each master of a cluster, which the client
// asks for the slots. If oneSlot is not "", all the keys are in the slot of this key, and Masters returns
// its master only.
func Masters(ctx context.Context, rdb redis.UniversalClient, oneSlot string) (nodes []redis.UniversalClient, err error) {
	cluster, isCluster := rdb.(Cluster)
	if !isCluster {
		return []redis.UniversalClient{rdb}, nil
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, master)
		return nil
	})
	if err != nil || oneSlot == "" {
		return nodes, err
	}
	// Without the call above, this would be the master of the slot when the client was last used.
	master, err := cluster.MasterForKey(ctx, oneSlot)
	return []redis.UniversalClient{master}, err
}

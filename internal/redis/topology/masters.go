package topology

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Masters returns the servers that have keys, as the client knows them now: the server, or each
// master of a cluster. If oneSlot is not "", all the keys are in the slot of this key, and Masters
// returns its master only.
func Masters(ctx context.Context, rdb redis.UniversalClient, oneSlot string) (nodes []redis.UniversalClient, err error) {
	cluster, isCluster := rdb.(Cluster)
	if !isCluster {
		return []redis.UniversalClient{rdb}, nil
	}
	if oneSlot != "" {
		master, err := cluster.MasterForKey(ctx, oneSlot)
		if err != nil {
			return nil, err
		}
		return []redis.UniversalClient{master}, nil
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, master)
		return nil
	})
	return nodes, err
}

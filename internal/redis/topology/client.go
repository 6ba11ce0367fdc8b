// Package topology tells kinds of Redis clients apart: clients of one server or of
// Sentinel, clients of a cluster, and wrappers that embed one of them. It refuses clients
// on which no lock can be kept.
package topology

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The reasons for which CheckClient refuses a client.
var (
	errRing = errors.New("a redis.Ring keeps a key on another server as soon as one seems to be down, " +
		"so two could hold it: give it a client of one server, of Sentinel or of a cluster")
	errReplicas = errors.New("the cluster client reads from replicas, which may not have the locks yet: " +
		"give it one without ReadOnly, RouteByLatency, RouteRandomly and ReplicaOnly")
)

// Kinds of clients. A type that embeds a client of go-redis is of the same kind.
type (
	// Server is a client of one server, or of Sentinel.
	Server interface {
		redis.UniversalClient
		Options() *redis.Options
	}
	// Cluster is a client of a cluster.
	Cluster interface {
		redis.UniversalClient
		Options() *redis.ClusterOptions
		MasterForKey(ctx context.Context, key string) (*redis.Client, error)
		ForEachMaster(ctx context.Context, fn func(context.Context, *redis.Client) error) error
		ReloadState(ctx context.Context)
	}
)

// CheckClient returns an error for a client with which no lock is safe: a Ring, and a
// client of a cluster that reads from replicas. It does no I/O, so it does not recognise a
// client that is connected to a replica: its commands fail with READONLY. It also cannot
// see the client inside a wrapper that does not embed it.
func CheckClient(rdb redis.UniversalClient) error {
	switch client := rdb.(type) {
	case *redis.Ring:
		return errRing
	case Cluster:
		if client.Options().ReadOnly { // which the other options imply
			return errReplicas
		}
	}
	return nil
}

// CanRunInline reports whether the client ends its reads and writes at the deadline of a
// context. Only then can a caller run a batch itself and return in time.
func CanRunInline(rdb redis.UniversalClient) bool {
	switch client := rdb.(type) {
	case *redis.Client:
		o := client.Options()
		return o.ContextTimeoutEnabled && haveDeadlines(o.ReadTimeout, o.WriteTimeout)
	case *redis.ClusterClient:
		o := client.Options()
		return o.ContextTimeoutEnabled && haveDeadlines(o.ReadTimeout, o.WriteTimeout)
	default:
		return false
	}
}

// LacksContextTimeout reports whether the option ContextTimeoutEnabled would let callers run
// batches themselves: see CanRunInline.
func LacksContextTimeout(rdb redis.UniversalClient) bool {
	switch client := rdb.(type) {
	case *redis.Client:
		return !client.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return !client.Options().ContextTimeoutEnabled
	default:
		return false
	}
}

// haveDeadlines reports whether reads and writes with these timeouts have deadlines: a
// negative timeout is none.
func haveDeadlines(read, write time.Duration) bool { return read >= 0 && write >= 0 }

// BusyPool returns the number of connections in the client's pool if all of them are in use.
// Otherwise it returns 0. It does no I/O.
func BusyPool(rdb Server) int {
	stats := rdb.PoolStats()
	if stats.IdleConns > 0 || int(stats.TotalConns) < rdb.Options().PoolSize {
		return 0
	}
	return int(stats.TotalConns)
}

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

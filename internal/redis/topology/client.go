package topology

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// Why a client is refused.
var (
	errRing = errors.New("a redis.Ring keeps a key on another server as soon as one seems to be down, " +
		"so two could hold it: give it a client of one server, of Sentinel or of a cluster")
	errReplicas = errors.New("the cluster client reads from replicas, which do not know yet who holds a key: " +
		"give it one without ReadOnly, RouteByLatency, RouteRandomly and ReplicaOnly")
)

// Kinds of clients, which are those of go-redis and what embeds one of them.
type (
	Server interface {
		redis.UniversalClient
		Options() *redis.Options
	}
	Cluster interface {
		redis.UniversalClient
		Options() *redis.ClusterOptions
		MasterForKey(ctx context.Context, key string) (*redis.Client, error)
		ForEachMaster(ctx context.Context, fn func(context.Context, *redis.Client) error) error
		ReloadState(ctx context.Context)
	}
)

// CheckClient refuses a client on which no lock can be kept: a Ring, and a client
// of a cluster that reads from replicas. It asks no server, so it cannot tell a
// client that was made to follow a replica: that one gets READONLY for each
// command. Nor can it see what a wrapper holds that embeds no client of go-redis.
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

// CanRunInline reports whether the client ends its reads and writes at the deadline
// of a context. Otherwise a leader could not be let go in time.
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

// haveDeadlines reports whether reads and writes with these timeouts end at a
// deadline: a negative timeout is one without.
func haveDeadlines(read, write time.Duration) bool { return read >= 0 && write >= 0 }

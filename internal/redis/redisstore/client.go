package redisstore

import (
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// Replicas says how many replicas must have a write before it counts. The zero value means
// none.
type Replicas = command.Replicas

// CheckClient returns an error for a client that cannot keep a lock: see
// topology.CheckClient.
func CheckClient(rdb redis.UniversalClient) error { return topology.CheckClient(rdb) }

// CheckReplicas returns an error if replicas cannot acknowledge writes of the client: see
// command.CheckReplicas.
func CheckReplicas(rdb redis.UniversalClient, replicas Replicas) error {
	return command.CheckReplicas(rdb, replicas)
}

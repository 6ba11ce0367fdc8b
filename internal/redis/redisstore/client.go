package redisstore

import (
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// Replicas are the replicas that must have a write before it counts. The zero value is
// none.
type Replicas = command.Replicas

// CheckClient refuses a client on which no lock can be kept: see topology.CheckClient.
func CheckClient(rdb redis.UniversalClient) error { return topology.CheckClient(rdb) }

// CheckReplicas refuses a client through which replicas cannot acknowledge writes: see
// command.CheckReplicas.
func CheckReplicas(rdb redis.UniversalClient, replicas Replicas) error {
	return command.CheckReplicas(rdb, replicas)
}

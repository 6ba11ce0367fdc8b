// Package redisserver starts a redis-server on a free loopback port, or several: a Redis
// Cluster, a master with replicas, or independent servers. It reads the cost of a run from
// them.
package redisserver

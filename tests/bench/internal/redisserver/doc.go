// Package redisserver has the servers of the program: one, a Redis Cluster, a master with
// replicas, or independent servers. It reads the cost of a run from them.
package redisserver

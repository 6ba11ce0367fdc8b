// Package redisserver runs a redis-server of its own on a free loopback port, or
// several: a Redis Cluster, a master with replicas, or servers that know nothing
// of each other. It reads from them what a run has cost.
package redisserver

// Package redisserver runs a redis-server of its own on a free loopback port, or
// a Redis Cluster of several, and reads from it what a run has cost.
package redisserver

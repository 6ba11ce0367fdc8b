// Package redisserver runs a redis-server of its own on a free loopback port,
// and reads from it what a run has cost.
package redisserver

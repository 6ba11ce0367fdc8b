// Package fiberlock runs the requests of Fiber handlers under a lock in Redis.
package fiberlock

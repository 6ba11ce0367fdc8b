// Package load has the jobs in which locks are compared: goroutines that take
// locks, in one process of several. Loop takes them again and again, Burst once
// in each round.
package load

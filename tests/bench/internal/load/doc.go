// Package load has the jobs that compare locks: goroutines that take locks, in one of
// several processes. Loop takes them again and again, Burst once in each round.
package load

// Package request measures what a lock adds to a request: a hello over
// loopback on each framework, with the lock and without, and what the
// middleware itself adds to the lock.
package request

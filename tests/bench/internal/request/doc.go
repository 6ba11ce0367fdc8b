// Package request measures what a lock adds to a request: a small request over loopback on
// each framework, with and without the lock, and what the middleware itself adds to the
// lock.
package request

// Package httpkey holds the key functions that the adapters of all HTTP
// frameworks share. They know net/http's request and nothing of a framework.
//
// What reads a body reads it whole, up to a limit, and puts a body in its place
// that yields the same bytes to the handler: see body.go. What is ambiguous, so
// that a handler could read another value than the lock did, is refused.
// HandUp gives the form that a handler has parsed to those outside the lock.
package httpkey

// Package client is the inside of a client process: a few clients that share a
// Locker, as the requests of one server do, and do what people do with a lock, in
// turns that a seed chooses.
//
// A turn takes a lock, waiting in one of several ways, reads and writes the
// registers of the resource under it, and leaves: in time, late, by a panic, or
// told that the lease is lost. Or it begins an attempt at a payment for which
// others ask too, charges for it, and commits or seals it; or it walks away.
//
// Each call is told to the campaign by one write to a pipe before it is made, and
// by another one after it returned.
package client

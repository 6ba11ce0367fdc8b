// Package client runs in a client process: a few clients share a Locker, as the requests of
// one server do, and use the lock in turns that a seed determines.
//
// A turn takes a lock, with one of several kinds of waits, reads and writes the registers
// of the resource, and releases the lock: in time, late, by a panic, or after the lease is
// lost. Or a turn begins an attempt at a payment for which other clients compete, charges
// for it, and commits, seals or aborts it, or leaves it without an end. An attempt that has
// lost its lease sometimes ends only after another one has begun.
//
// A client reports each call to the campaign by one write to a pipe before the call, and by
// another one after it.
package client

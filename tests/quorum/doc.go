// Package quorum proves the lock of a quorum, of five real servers, through
// the public API and over real connections: exclusive whatever happens to the
// servers, available with a majority of them, and a clear refusal without.
//
// # The rows
//
// A node can be killed, stopped, delayed, cut off, or restarted with nothing in its
// memory. Each of these strikes each node, and each two of them each two nodes:
// with the row in which all are well these are 276 rows. In each of them the faults
// strike at the two moments that are most dangerous for a lock: while one holds it
// and others wait, and when several have just asked for it. As long as the nodes
// are ill, and when they have been mended, each process must get locks, by calls
// and by requests over HTTP; the lease that was held must stay; and a node that
// came back empty must get its part of a lease again.
//
// Other rows make three nodes ill, or more. Then nobody gets a lock, everybody is
// told that Redis is unavailable, and never that another holds the lock; who holds
// one is told that it is lost. When the nodes are mended all goes on by itself.
//
// # The checks
//
// Times are those of one monotonic clock. A hold is believed in from its grant to
// the earliest of its release, the end of its context and the end of its validity.
// No two holds of a key overlap. One test, in which servers come back empty and
// give votes at once, shows that the check finds two holders where there are two.
//
// There is nothing in this package but its tests.
package quorum

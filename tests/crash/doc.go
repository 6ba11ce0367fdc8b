// Package crash proves the Idempotent middlewares on a real redis-server,
// with service processes that crash.
//
// # The site
//
// The test binary starts itself again as processes of a payment service, each
// behind a proxy of its own to Redis. The test is the rest of the world: it is
// the clients, over real connections; the ledger, which each charge goes to and
// which counts them; the operator who resolves; and the witness, who hears from
// Redis each write to a record. What a process is killed in is chosen exactly: a
// command to Redis that the proxy holds in its hand, a call of the ledger, or a
// part of an answer that a client has read. At its death nothing else of that
// process is on its way.
//
// # The checks
//
// What the clients, the ledger and the witness have seen of a key is its story.
// A story has faults where two answers were committed, a replay differs from what
// was committed, an answer was sent that was not, or more was charged than the
// policy allows. The checks have tests of their own, with stories that are wrong
// on purpose.
//
// There is nothing in this package but its tests.
package crash

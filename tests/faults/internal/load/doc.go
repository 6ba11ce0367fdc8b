// Package load proves what becomes of thousands of requests that are under way at
// once when Redis is killed under them.
//
// Two services, HTTP servers on real TCP connections with Lockers of their own,
// have 5,000 requests in flight for 1,000 accounts: each client has a connection
// of its own, and a gate lets none into the middlewares before all have arrived.
// Then Redis is killed and brought back, twice.
//
// Each request must get an answer of the table of outcomes, and a success only
// where its handler ran. The handlers count, in a way that loses a count where two
// of an account are inside: where Redis keeps what it confirmed the counts must be
// exact, and where it loses all locks those that look at fencing numbers. After it
// nothing may be left: no goroutine, no connection, no channel, no key but those
// that stay by design.
//
// REQLOCK_LOAD is how many requests there are instead, as in REQLOCK_LOAD=1000. A
// short run and one under the race detector, which knows no more than 8,128
// goroutines, have 500. There is nothing in this package but its tests.
package load

// Package load tests thousands of requests that are in flight when Redis is killed.
//
// Two instances of a service, which are HTTP servers on TCP connections with their own
// Lockers, have 5,000 requests in flight for 1,000 accounts. Each client has its own
// connection. A gate holds all requests back until all have arrived. Then Redis is killed
// and restarted, twice.
//
// Each request must get a response of the table of outcomes, and a success only if its
// handler ran. The handlers count in a way that loses a count if two handlers of an account
// overlap. If Redis keeps its data, all counts must be exact. If Redis loses its data, the
// counts that check fencing numbers must be exact. At the end nothing may be left: no
// goroutine, no connection, no channel, and no key except fencing counters and records.
//
// The fast tier and the race detector, which supports at most 8,128 goroutines, use 500
// requests. REQLOCK_LOAD sets another number, as in REQLOCK_LOAD=1000. The package has only
// tests.
package load

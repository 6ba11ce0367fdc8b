// Package load tests what clients of a service get if Redis is killed while thousands of
// their requests are in flight.
//
// Two instances of a service, which are HTTP servers with their own Lockers, have 5,000
// requests in flight for 1,000 accounts. A gate holds all requests back until all have
// arrived. Then Redis is killed and restarted, twice.
//
// Each request must get an answer of the table of refusals, not before its wait is over, and
// a success only if its handler ran. No two handlers of an account overlap, and no payment
// runs twice, unless a lease was lost. At the end no lock and no queue is left.
//
// The fast tier and the race detector, which supports at most 8,128 goroutines, use 500
// requests. The package has only tests.
package load

// Package store defines the transitions of a lock: the interface between package engine,
// which has the queues of one process and does not depend on Redis, and the stores, which
// send the transitions to Redis.
//
// It has a request type for each transition, the results of the transitions, and the fault
// of a transition. Both sides import it. It imports neither.
package store

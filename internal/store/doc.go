// Package store defines the transitions of a lock: the interface between package engine,
// which has the queues of one process and no Redis, and the stores, which have Redis and no
// queues of a process.
//
// It has a request type for each transition, the results of the transitions, and the fault
// of a transition. Both sides import it. It imports neither.
package store

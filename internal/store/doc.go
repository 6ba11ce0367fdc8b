// Package store is the leaf between the engine, which knows one process's
// waiting lines and no Redis, and redisstore, which knows Redis and no lines.
//
// It names the atomic transitions of a lock as an interface, their answers,
// and the kinds of fault a transition can meet. Both sides import it; it
// imports neither.
package store

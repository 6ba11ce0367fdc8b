// Package resharding proves the lock on a Redis Cluster whose slots move from
// master to master under load, through the public API of package core alone.
//
// # The load
//
// Several Lockers, each with a client of its own, stand for as many processes.
// Their callers take turns on the hot keys of a few slots, where many wait, and
// on many cool ones; they wait for as long as it takes or for a while, try, leave
// in mid-wait, hold for longer than a lease lives without renewal, and run
// idempotent requests. Meanwhile the test moves the slots to and fro, key by key,
// and stays in each state that a move goes through until commands have met it.
//
// # The checks
//
// What the callers saw is a history of holds. A hold is believed in from its
// grant to the earliest of its release, the end of its context and the end of
// its validity. The checks ask that no two holds of a key overlap, that fences
// rise, that whoever waits without end is served, and of idempotent requests that
// each takes effect once and is answered alike. Then nothing may be left in Redis
// that lives for ever or stands in a line. The checks have tests of their own,
// with histories that are wrong on purpose.
//
// There is nothing in this package but its tests.
package resharding

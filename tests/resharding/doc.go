// Package resharding tests the lock on a Redis Cluster whose slots move between masters
// under load, through the public API of package core alone.
//
// # The load
//
// Several Lockers, each with a client of its own, stand for as many processes. Their
// callers use the hot keys of a few slots, where many callers wait, and many cool keys.
// They wait without a limit or for a while, do not wait, cancel while they wait, hold for
// longer than a lease lives without renewal, and run idempotent requests. Meanwhile the
// test moves the slots from master to master, key by key, and stays in each state of a
// move until commands have met that state.
//
// # The checks
//
// Package history checks what the callers saw: no two holds of a key overlap, fences
// rise, and each caller that waits without a limit is served. Each idempotent request
// takes effect once and has one answer. Afterwards Redis has no lock, no queue and no key
// without a TTL.
//
// The package has only tests.
package resharding

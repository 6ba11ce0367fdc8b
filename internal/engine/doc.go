// Package engine is one process's side of the lock. It knows no Redis: it
// moves keys through the transitions of a store.Store.
//
// # One line for each key
//
// All callers of one key in this process stand in one line, first in, first
// out. Only the line talks to the store, and only when its state says so:
//
//	idle ──▶ asking ──▶ held ──▶ freeing ──▶ idle
//	            ▲        │ ▲        │
//	            │        ▼ │        │
//	            │      passing      │
//	            └───────────────────┘
//
// asking: the line asks the store, one question after the other, until the key
// is granted or nobody waits any more; no goroutine stands behind it, and no
// caller, so a caller that leaves takes nothing with it. Only the first question
// of an idle line, and a release, may run on their caller's goroutine, for a
// moment. held: a caller runs
// under the lease. On its release the lease passes to the next of the line
// (passing, if the lease must be renewed first), or goes back to the store
// (freeing). A line in which nobody stands and nothing is held is forgotten.
//
// # One place in the store's line
//
// The lines of all processes meet in the store, where each has at most one
// place, for its head. A process asks without a place first. Once refused it
// listens for hints, takes a place, and from then on waits: a hint tells it to
// look again, and so does a timer of about a second, since anything that would
// tell it may be lost. Only the answer to its question grants the key; a hint
// never does.
//
// A lease is passed on within a process without limit as long as no other
// process is known to wait. Else its budget ends after 64 passes or 50 ms, and
// one command hands the key to the first of the store's line and puts this
// process behind the last.
//
// # Episodes and holds
//
// A token names one episode: one place of the line in the store, and the lease
// that follows.
// A lease is the store's grant to this process; a hold is one caller's turn on
// it. Once a release of a token was sent, the token is dead, and whoever sees
// it in the key again releases it again.
//
// # Validity
//
// A lease is valid from the moment its granting or renewing command was sent,
// for its TTL less the drift that two clocks may show. A schedule ends the
// holder's context then, whatever a renewal in flight is doing. It has one timer
// for all leases and their renewals.
package engine

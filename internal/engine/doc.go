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
// it. Once a release of a token was sent, the token is dead, and it is released
// again where it is seen in the key again.
//
// # What decides about a lease
//
// Only these begin or end a lease, or change how long it lives:
//
//   - the reply to the line's own question grants the key, if the key carries the
//     token of that question, and if the validity has not ended when the reply comes;
//   - the reply to a renewal of the present lease raises the validity, or ends the
//     lease. A reply to a renewal of an earlier lease changes nothing;
//   - the reply to the line's own release ends the lease. It begins the next one where
//     the key stayed with this process, under the token that rejoined;
//   - the local clock ends a lease whose validity is over;
//   - the holder's release, the holder's MaxHold, and Close.
//
// These decide nothing:
//
//   - A hint. Anybody who may publish can forge one. A waiter asks again, and a holder
//     assumes that other processes wait, which costs a pass or a command.
//   - A token that a hint, a reply or the value of a key names. It is released only if it
//     is dead: this process has issued it, and the key's line does not own it, as the
//     token of the line, of its lease, of its release, of the episode that rejoins, or
//     of its ballot, nor of a lost lease whose holder has not come back. This is checked
//     under the mutex of the line, before each release.
//   - The reply to a command that was left behind. It causes what a hint causes. The
//     releases that hints cause are bounded. Those that such replies cause are not: there
//     are no more of them than commands that this process sent.
//   - The caller's context, once the lease is granted. It is the parent of the hold's
//     context. Its end releases nothing. A context that does not end keeps nothing: the
//     hold's context ends with the release or the loss, whatever its parent does.
//
// # Validity
//
// A lease is valid from the moment its granting or renewing command was sent,
// for its TTL less the drift that two clocks may show. A schedule ends the
// holder's context then, whatever a renewal in flight is doing. It has one timer
// for all leases and their renewals.
package engine

package engine

import "time"

// WaitForever is a Request's wait that ends only with the caller's context.
const WaitForever = time.Duration(-1)

// A Request says what a caller wants.
type Request struct {
	Key string
	// TTL is the life of the lease without renewal.
	TTL time.Duration
	// Wait is how long to stand in line: 0 not at all, WaitForever without end.
	Wait time.Duration
	// Renew keeps the lease alive for as long as it is held.
	Renew bool
	// MaxHold ends the holder's context after this time; 0 never.
	MaxHold time.Duration
	// Fencing gives the hold a fencing number.
	Fencing bool
	// Attempt is the idempotent request that the lease is for; nil is none. A
	// lease of one is never passed on: another attempt needs a token of its own.
	Attempt *Attempt
}

// Hooks are how the engine speaks to its owner. All of them are called outside
// the engine's locks and on no goroutine that others wait for, so several at a
// time.
type Hooks struct {
	// Observe is told each event. It may be nil.
	Observe func(Event)
	// Cause turns the reason of a loss into the error with which the holder's
	// context is cancelled. It must not be nil.
	Cause func(Loss) error
}

// A Kind says what an Event tells of.
type Kind int

// The kinds of event.
const (
	Acquired Kind = iota + 1
	Waiting
	Refused
	Released
	Renewed
	Lost
	HeldLong
	Replayed  // a caller got the answer of an attempt that was done
	Committed // an attempt is done, or could not be committed
	Restored  // the record of an attempt was gone before it was done
)

// A Handover says how a lease came to its holder.
type Handover int

// The ways in which a lease comes to its holder.
const (
	Free    Handover = iota + 1 // the key was free
	Awaited                     // another held it first
	Passed                      // by another holder in this process
	Handed                      // by another process, which told of it
)

// A Loss says why a lease ended under its holder.
type Loss int

// The reasons of a loss.
const (
	NotLost         Loss = iota
	Expired              // not renewed before its validity was over
	Taken                // the key is gone, or another's
	MaxHoldExceeded      // the holder's MaxHold is over
	Closed               // the engine was closed and waited no longer
)

// An Event is something that happened to a lock or to a request for one.
type Event struct {
	Kind     Kind
	Key      string
	Queued   bool          // a Waiting came before
	Waited   time.Duration // Acquired, Refused, Replayed
	Held     time.Duration // Released, Renewed, Lost, HeldLong, Committed, Restored
	Handover Handover      // Acquired
	Loss     Loss          // Lost, Released; Committed: Taken if another attempt had begun
	Err      error         // Refused: a *Refusal; Released, Renewed, Committed: a fault, if any
}

// observe tells the owner of an event.
func (e *Engine) observe(event Event) {
	if e.hooks.Observe != nil {
		e.hooks.Observe(event)
	}
}

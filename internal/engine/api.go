package engine

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// WaitForever is the wait of a Request that only the end of the caller's context ends.
const WaitForever = time.Duration(-1)

// A Limit is store.Limit, for the owner of the engine.
type Limit = store.Limit

// OutageOf is store.Outage, for the owner of the engine.
type OutageOf = store.Outage

// IsOutage reports whether an error is part of an outage, which has an event of its own.
func IsOutage(err error) bool { return store.IsOutage(err) }

// The limits of leases.
const (
	Exclusive = store.Exclusive
	Unlimited = store.Unlimited
	MaxLimit  = store.MaxLimit
)

// A Request is what a caller wants.
type Request struct {
	Key string
	// Limit says which leases may be out beside this one; 0 is store.Exclusive. The limit of a
	// request with an Attempt is Exclusive.
	Limit store.Limit
	// Name is the name that events repeat; "" is none.
	Name string
	// TTL is how long the lease lives without renewal.
	TTL time.Duration
	// Wait is how long to wait in the queue: 0 is not at all, WaitForever has no limit.
	Wait time.Duration
	// MaxHold cancels the holder's context after this time; 0 is never.
	MaxHold time.Duration
	// MinHold keeps the key locked for at least this time from the grant: see keep.go. 0 does
	// not. It has no effect on an Attempt, and none on a shared lease.
	MinHold time.Duration
	// MaxWaiters limits the waiters for the key when this caller has to wait.
	MaxWaiters int
	// Renew keeps the lease alive for as long as it is held.
	Renew bool
	// Fencing gives the hold a fencing number.
	Fencing bool
	// FailOpen says that the caller runs without the lease if the store does not answer. It
	// is refused only after the fault of a request to the store that ended while it waited.
	FailOpen bool
	// Attempt is the idempotent request that the lease is for; nil is none. A lease for
	// an attempt is never passed on, because each attempt needs its own token.
	Attempt *Attempt
	// Caller says which code wants the lease; "" is unknown. Events repeat it.
	Caller string
	// Parent is the parent of the hold's context; nil is the context that was given to
	// Acquire.
	Parent context.Context
}

// Hooks connect the engine to its owner. The engine calls them outside its mutexes. Several
// calls may run at a time.
type Hooks struct {
	// Observe receives each event. It may be nil. The engine calls it on the goroutine of the
	// caller whom the event is about, or else on that of the eventQueue. It must not panic. It
	// may end its goroutine: then the engine ends the hold of the caller.
	Observe func(Event)
	// OnlyUrgent limits Observe to the events that an operator should see: see isUrgent.
	OnlyUrgent bool
	// IsSealed reports whether the owner has to open a record, and then observes itself whether the
	// caller has got an answer. It may be nil.
	IsSealed func(record []byte) bool
	// Cause returns the error for a loss. The engine cancels the holder's context with
	// it. It must not be nil.
	Cause func(Loss) error
}

// A Kind is the kind of an Event.
type Kind int8

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
	Committed // an attempt was committed, or its commit failed; twice if it went on
	Restored  // the record of an attempt was gone before its commit
	// OutcomeUnknown: it is unknown whether the request of an attempt took effect.
	OutcomeUnknown
	Closing // Close has begun and waits for holders
	Warned  // the Err of the event is for an operator; a *Dropped is from the eventQueue
	Outage  // an outage of a server begins or ends; Err is a *store.Outage
	// Searched: a search has counted the unknown outcomes; or this process, which counted them
	// before, searches no longer, and then Held is 0.
	Searched

	// HandedOver: a holder has ended its lease, and has a ticket for it. A Released follows.
	HandedOver

	kindCount = int(HandedOver) + 1
)

// A Grant is the way in which a lease came to its holder.
type Grant int8

// The kinds of Grant.
const (
	Free     Grant = iota + 1 // the key was free
	Awaited                   // another held the key first
	Passed                    // from another holder in this process
	Handed                    // from another process, which sent a hint
	Accepted                  // from another holder, by a ticket
)

// A Loss is the reason for which a lease ended under its holder.
type Loss int8

// The reasons of a loss.
const (
	NotLost         Loss = iota
	Expired              // the validity ended without a renewal
	Taken                // the key is gone, or holds the token of another
	MaxHoldExceeded      // MaxHold has passed
	Closed               // Close gave up waiting for the holder
	GivenAway            // Hold.Handover has ended the lease; never the Loss of an event
)

// An Event reports what happened to a lock, or to a request for a lock. It has at most 128
// bytes: a larger variable that a closure captures needs an allocation of its own.
type Event struct {
	Kind     Kind
	Grant    Grant            // Acquired
	Loss     Loss             // Lost, Released; Committed: Taken if another attempt had begun
	Ending   Ending           // Released, Committed and OutcomeUnknown of an Attempt that this process has ended
	Attempt  bool             // the request has an Attempt
	Shared   bool             // the request is for a shared lease
	Queued   bool             // a Waiting event came before
	Repeated bool             // HeldLong, Committed: there was an event for the hold before; Renewed: this renewal and the one before failed
	GoesOn   bool             // Committed, OutcomeUnknown: the commit has failed so far, and goes on: see openCommit
	Key      string           // the Key of the Request
	Name     string           // the Name of the Request
	Token    string           // OutcomeUnknown of an Attempt that this process has ended by EndUnknown: the record notes the report
	Context  *context.Context // the context of the request, or of Close; nil is none
	Waited   time.Duration    // Acquired, Refused, Replayed
	Held     time.Duration    // Released, HandedOver, Renewed, Lost, HeldLong, Committed, Restored, OutcomeUnknown, Closing; how long a Searched took
	Origin   string           // HeldLong, Closing: the Caller of the Request; any other kind: the First of a Refusal, or the Reference of the Attempt whose outcome is unknown
	Holds    int              // Closing: how many leases have a holder; Searched: how many outcomes are unknown
	Err      error            // Refused: a *Refusal; Released, Renewed, Committed, OutcomeUnknown: a fault, if any; or the cause of Interrupt, or a *Found; Warned
}

// of returns the event with what it has from the request of the hold.
func (e Event) of(h *Hold) Event {
	e.Key, e.Name, e.Context = h.request.Key, h.request.Name, &h.request.Parent
	e.Attempt, e.Shared = h.request.Attempt != nil, h.request.Limit.IsShared()
	return e
}

// observe passes an event to the owner, on the goroutine of a caller.
func (e *Engine) observe(event Event) {
	if e.observes(event) {
		e.hooks.Observe(event)
	}
}

// observes reports whether the owner wants an event.
func (e *Engine) observes(event Event) bool {
	return e.hooks.Observe != nil && event.Key != searchKey && (!e.hooks.OnlyUrgent || event.isUrgent())
}

// isUrgent reports whether an operator should see the event. It is false for the events of each
// lock.
func (e *Event) isUrgent() bool {
	switch e.Kind {
	case Lost, HeldLong, Restored, OutcomeUnknown, Closing, Warned, Outage:
		return true
	case Refused:
		refusal, ok := e.Err.(*Refusal) //nolint:errorlint // errors.As allocates, for each busy key
		return ok && refusal.Reason == Unavailable
	case Acquired, Waiting, Released, Renewed, Replayed, Committed, Searched, HandedOver:
	}
	return e.Err != nil || e.Repeated
}

// CountUnlocked says that a caller for the key, which was refused, runs without the lock.
func (e *Engine) CountUnlocked(key string) { e.store.CountUnlocked(key) }

// onOutage reports the begin or the end of an outage to the owner.
func (e *Engine) onOutage(outage store.Outage) {
	e.observeLater(queuedEvent{Event: Event{Kind: Outage, Err: &outage}})
}

// onWarning reports a warning of the store to the owner.
func (e *Engine) onWarning(err error) {
	e.observeLater(queuedEvent{Event: Event{Kind: Warned, Err: err}})
}

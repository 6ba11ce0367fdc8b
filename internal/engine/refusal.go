package engine

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// A Reason says why a caller did not get its lock.
type Reason int

// The reasons of a refusal.
const (
	Busy        Reason = iota + 1 // another holds the key, and the caller may not wait
	TimedOut                      // another held the key until the end of the wait
	Unavailable                   // the store did not answer, or answered with an error
	ClosedDown                    // the engine is closed
	QueueFull                     // the key has the maximum of waiters
	Overloaded                    // all keys together have the maximum of waiters
	TicketUsed                    // the key does not hold the token of the ticket any more, and never will again

	// The record of the key decides that an attempt must not run.
	Done         // an earlier attempt was done; the refusal has its answer
	Unreplayable // an earlier attempt was done, and its answer was not kept
	Mismatch     // the record belongs to another request
	Died         // an earlier attempt died
)

// A Refusal is the error of a caller that did not get its lock.
type Refusal struct {
	Reason Reason
	// Record is the answer of the attempt that was Done. The caller must not change its
	// bytes.
	Record []byte
	// First is the reference of the attempt because of which an attempt must not run, or not now; "" is
	// none.
	First string
	// Fault is the store's fault that is the reason of Unavailable, or says why a key of another
	// program stays locked, or a ticket is refused.
	Fault error
	// Ended is the ctx.Err() of the caller's context, if that ended the wait, and Cause
	// is its context.Cause.
	Ended, Cause error
	// Waited is how long the caller has waited, and Queued says that there was a Waiting event, if the
	// owner observes the result: see Hooks.IsSealed.
	Waited time.Duration
	Queued bool
	// Early says that the caller's context had ended before the call, so that the caller has not
	// waited.
	Early bool
}

// Error returns a short text. The owner of the engine makes the text for its users.
func (r *Refusal) Error() string {
	switch {
	case r.Ended != nil:
		return r.Ended.Error()
	case r.Fault != nil:
		return r.Fault.Error()
	default:
		return "refused"
	}
}

// MayBeApplied reports whether the store may have applied the transition, or may apply it later.
func (r *Refusal) MayBeApplied() bool {
	return r.Ended != nil || r.Fault != nil && store.FaultOf(r.Fault).Unknown
}

// giveUpRefusal returns the refusal of a waiter when its wait ends. The reason is
// contention only if the waiter saw contention, and if the store's last reply does not
// contradict it. A split vote is contention: other processes asked at the same time.
func (l *waitlist) giveUpRefusal(w *waiter) *Refusal {
	splits := l.root.pauses.splits // only exclusive callers vote
	switch {
	case l.lastFault != nil:
		return &Refusal{Reason: Unavailable, Fault: l.lastFault}
	case w.nowait && splits > 0:
		return &Refusal{Reason: Busy}
	case !w.queued && splits == 0:
		return &Refusal{Reason: Unavailable, Fault: errNoAnswer}
	default:
		return l.held(TimedOut)
	}
}

// errStuck says that a wait for the key does not help.
var errStuck = errors.New("the key in Redis has no TTL, so another program has set it: delete it as soon as no program needs it")

// held returns the refusal of a caller because another holds the key.
func (l *waitlist) held(reason Reason) *Refusal {
	refusal := &Refusal{Reason: reason, First: l.root.firstRunning()}
	if l.isStuck {
		refusal.Fault = errStuck
	}
	return refusal
}

// isStuck reports whether the store's reply names a holder that is no token, with a key that never
// expires.
func isStuck(answer store.Answer) bool {
	if answer.Granted || answer.Remaining >= 0 || answer.Holder == "" || answer.SplitVote {
		return false
	}
	_, _, _, isToken := store.ParseToken(answer.Holder)
	return !isToken
}

// endedBy adds the end of the caller's context to a refusal.
func (r *Refusal) endedBy(ctx context.Context) *Refusal {
	ended := *r
	ended.Ended = ctx.Err()
	ended.Cause = context.Cause(ctx)
	return &ended
}

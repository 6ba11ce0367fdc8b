package engine

import "context"

// A Reason says why a caller did not get its lock.
type Reason int

// The reasons of a refusal.
const (
	Busy        Reason = iota + 1 // another holds the key, and the caller may not wait
	TimedOut                      // another held the key for as long as the caller might wait
	Unavailable                   // the store did not answer, or with an error
	ClosedDown                    // the engine is closed
	QueueFull                     // as many wait for this key as may
	Overloaded                    // as many wait for all keys together as may

	// Those of an attempt: by the record of its key it is not to run.
	Done        // an earlier attempt was done; the refusal has its answer
	Sealed      // an earlier attempt was done, and its answer was not kept
	Mismatch    // the record is that of another request
	Interrupted // an earlier attempt died
)

// A Refusal is the error of a caller that did not get its lock.
type Refusal struct {
	Reason Reason
	// Record is the answer of the attempt that was Done. Nobody may change its
	// bytes.
	Record []byte
	// Fault is the store's fault behind Unavailable.
	Fault error
	// Ended is the caller's ctx.Err(), if that ended the wait, and Cause what
	// context.Cause says of it.
	Ended, Cause error
}

// Error returns a short text; the engine's owner words its own errors.
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

// gaveUp returns the refusal of a waiter whose time is over: contention only if
// it saw any, and if the store's last answer does not deny it. A vote that was split
// is contention: others asked at the same time.
func (q *queue) giveUpRefusal(w *waiter) *Refusal {
	switch {
	case q.lastFault != nil:
		return &Refusal{Reason: Unavailable, Fault: q.lastFault}
	case !w.queued && q.pauses.splits > 0 && w.nowait:
		return &Refusal{Reason: Busy}
	case !w.queued && q.pauses.splits == 0:
		return &Refusal{Reason: Unavailable, Fault: errNoAnswer}
	default:
		return &Refusal{Reason: TimedOut}
	}
}

// endedBy adds the end of the caller's context to a refusal.
func (r *Refusal) endedBy(ctx context.Context) *Refusal {
	ended := *r
	ended.Ended = ctx.Err()
	ended.Cause = context.Cause(ctx)
	return &ended
}

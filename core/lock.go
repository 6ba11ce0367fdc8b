package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/internal/engine"
)

// maxKeyLen is the largest length of a key, in bytes. The adapters' keys have much
// smaller limits for the parts of a request. Package keyspace has the same limit for hints.
const maxKeyLen = 4096

// Lock takes the lock of a key. If the key is locked, Lock waits until ctx ends or the wait
// of WithWait is over. It returns at once when ctx ends, and then holds no lock. Exception:
// if the caller's goroutine sends the command itself (see New) and Redis has just stopped
// replying, Lock returns up to 50 ms later.
//
// ctx is also the parent of the lease's context. To limit only the wait, use WithWait.
//
// If ctx is derived from the context of a lease of the same key and Locker, the new lease is
// nested. It shares the lock of the outer lease, and its release does not free the lock. A
// nested lease is lost when the lease that holds the lock is lost, or when the release of
// that lease begins. Release nested leases too: until then the outer lease keeps their
// memory.
//
// The error is an *Error of the kind ErrBusy or ErrWaitTimeout, ErrQueueFull,
// ErrOverloaded, ErrUnavailable, ErrClosed, ErrNoKey, ErrInvalidKey or ErrHiddenLease, or for
// a nested lease ErrUpgrade. If ctx ended the wait, the error is also ctx's error, unless ctx
// ended with a lease of the caller. If ctx had ended before the call, the text of the error says so:
// that is common in a goroutine that goes on after its handler or the function of Do has returned.
// Give it context.WithoutCancel(ctx), or let it keep the locks of the handler by Detach. A nil ctx panics.
//
// A caller that holds one lock and takes another can wait for ever: see "Deadlocks" in the
// package comment.
func (l *Locker) Lock(ctx context.Context, key string) (*Lease, error) {
	return l.acquire(ctx, lockKey{Raw: key}, l.waitOr(engine.WaitForever), &Lease{})
}

// TryLock takes the lock of a key if the lock is free. It does not wait for a release. It
// returns the same results as Lock.
func (l *Locker) TryLock(ctx context.Context, key string) (*Lease, error) {
	return l.acquire(ctx, lockKey{Raw: key}, 0, &Lease{})
}

// waitOr returns the wait of WithWait, or the fallback if it is not set.
func (l *Locker) waitOr(fallback time.Duration) time.Duration {
	if l.settings.wait == waitUnset {
		return fallback
	}
	return l.settings.wait
}

// acquire takes the lock of one key within the wait. It fills in the empty lease and returns
// it.
func (l *Locker) acquire(ctx context.Context, key lockKey, wait time.Duration, lease *Lease) (*Lease, error) {
	outer, err := l.findOuter(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case outer != nil && outer.nest(ctx, lease):
		return lease, nil
	}
	if err := l.take(ctx, ctx, key, wait, nil, lease); err != nil {
		return nil, l.withRequests(refusalOf(err, l.settings.retryAfter))
	}
	return lease, nil
}

// findOuter returns the lease of the caller in which a lease of the key nests, or nil if there
// is none. The error refuses a key that no wait can grant, because of a mistake in the program.
func (l *Locker) findOuter(ctx context.Context, key lockKey) (*Lease, error) {
	if err := checkKey(key.Raw); err != nil {
		l.observeRefused(ctx, key, false, l.withRequests(err))
		return nil, err
	}
	limit := l.limitOf(key)
	if key.HasLimit {
		if err := l.settings.checkKeyLimit(limit); err != nil {
			l.observeRefused(ctx, key, false, err)
			return nil, err
		}
	}
	outer := heldLease(ctx, l, key.Raw)
	if outer != nil {
		if err := l.checkUpgrade(outer, limit); err != nil {
			return nil, l.refuseMistake(ctx, key, false, err)
		}
	} else if hidesLease(ctx, l, key.Raw) {
		return nil, l.refuseMistake(ctx, key, false, &Error{Kind: ErrHiddenLease})
	}
	return outer, nil
}

// take takes the lock of one key from the engine and fills in the empty lease. The attempt
// is nil for a plain lock. parent is the parent of the lease's context. The error is an error
// of the engine.
func (l *Locker) take(ctx, parent context.Context, key lockKey, wait time.Duration, a *engine.Attempt, lease *Lease) error {
	outer, _ := leaseOf(ctx) // calls the context, so it comes before the grant
	l.beater.Begin()
	request := l.request(key, wait)
	request.Attempt, request.Caller, request.Parent = a, l.caller(), parent
	hold, err := l.engine.Acquire(ctx, request)
	if err != nil {
		return err
	}
	lease.locker, lease.key, lease.hold, lease.parent = l, key.Raw, hold, outer
	return nil
}

// request returns the request to the engine for the lock of a key, without an attempt, a caller and a parent.
func (l *Locker) request(key lockKey, wait time.Duration) engine.Request {
	return engine.Request{
		Key:        key.Raw,
		Limit:      l.limitOf(key),
		Name:       l.nameOf(key),
		TTL:        l.settings.ttl,
		Wait:       wait,
		Renew:      l.settings.renewal,
		MaxHold:    l.settings.maxHold,
		MinHold:    l.settings.minHold,
		MaxWaiters: l.settings.maxWaiters,
		Fencing:    l.settings.fencing,
		FailOpen:   l.settings.failOpen,
	}
}

// refuseMistake refuses a lock because of a mistake in the program. It sends a Refused event,
// since the engine does not see the request, and a Warned event for the first one of its kind and name.
func (l *Locker) refuseMistake(ctx context.Context, key lockKey, attempt bool, err *Error) error {
	event := l.eventOf(Refused, key, l.withRequests(err))
	event.Idempotent = attempt
	l.settings.notifyFrom(ctx, event)
	warning := error(err)
	if event.Name != "" {
		warning = fmt.Errorf("%w: the lock has the name %q", err, event.Name)
	}
	l.warn(refusedMistake{err.Kind, err.Cause, event.Name}, warning)
	return err
}

// A refusedMistake is what refuseMistake warns of once.
type refusedMistake struct {
	kind, cause error
	name        string
}

// checkKey refuses a key that is empty or too long.
func checkKey(key string) *Error {
	switch {
	case key == "":
		return &Error{Kind: ErrNoKey}
	case len(key) > maxKeyLen:
		return &Error{Kind: ErrInvalidKey, Cause: errKeyTooLong}
	}
	return nil
}

var (
	errKeyTooLong = errors.New("the key is too long")
	errLeaseEnded = errors.New("a lease of the caller has ended")
)

// refusalOf converts the engine's refusal to an error of this package.
func refusalOf(err error, retryAfter time.Duration) *Error {
	var refused *engine.Refusal
	if !errors.As(err, &refused) {
		return &Error{Kind: ErrUnavailable, RetryAfter: retryAfter, Cause: err}
	}
	e := &Error{Kind: kindOf(refused.Reason), RetryAfter: retryAfter, early: refused.Early, first: refused.First}
	if isSettled(refused.Reason) {
		e.RetryAfter = 0
	}
	if isLoss(refused.Cause) {
		// The caller waited under a lease, and that lease ended, not the caller's own
		// context. The error is not ErrLost, because the caller never held the lock that
		// it waited for.
		e.Cause = join(errLeaseEnded, refused.Fault)
		return e
	}
	e.Cause, e.ended = causes(refused), refused.Ended
	return e
}

// isSettled reports whether a retry of the request gets the same refusal.
func isSettled(reason engine.Reason) bool {
	switch reason {
	case engine.Mismatch, engine.Died, engine.Unreplayable, engine.TicketUsed:
		return true
	default:
		return false
	}
}

// isLoss reports whether the cause of a context is the end of a lease.
func isLoss(cause error) bool { return errors.Is(cause, ErrLost) || errors.Is(cause, ErrClosed) }

// kindOf converts the engine's reason to an error of this package.
func kindOf(reason engine.Reason) error {
	switch reason {
	case engine.Busy:
		return ErrBusy
	case engine.TimedOut:
		return ErrWaitTimeout
	case engine.QueueFull:
		return ErrQueueFull
	case engine.Overloaded:
		return ErrOverloaded
	case engine.Mismatch:
		return ErrMismatch
	case engine.Died:
		return ErrOutcomeUnknown
	case engine.Unreplayable:
		return ErrUnreplayable
	case engine.ClosedDown:
		return ErrClosed
	case engine.TicketUsed:
		return errTicketVoid
	case engine.Unavailable, engine.Done: // Done has an answer, so it is not a refusal
	}
	return ErrUnavailable
}

// causes joins the causes of a refusal: the end of the caller's context, the cause of that
// end if it is another error, and the fault of Redis.
func causes(refused *engine.Refusal) error {
	switch {
	case refused.Ended == nil:
		return refused.Fault
	case errors.Is(refused.Cause, refused.Ended):
		return join(refused.Cause, refused.Fault)
	default:
		return join(refused.Ended, refused.Cause, refused.Fault)
	}
}

// causeOf converts the engine's loss to the cause of the lease's context.
func causeOf(loss engine.Loss) error {
	switch loss {
	case engine.NotLost:
		return nil
	case engine.MaxHoldExceeded:
		return ErrMaxHold
	case engine.Closed:
		return ErrClosed
	case engine.GivenAway:
		return ErrHandedOver
	case engine.Expired, engine.Taken:
	}
	return ErrLost
}

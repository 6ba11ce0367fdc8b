package core

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/engine"
)

// maxKeyLen bounds a key, in bytes. Parts of a request that become keys are
// bounded much lower by the adapters' key functions.
const maxKeyLen = 4096

// Lock takes the lock of a key, and waits for it if another holds it: until
// ctx ends, or the wait of WithWait is over. It returns at once when ctx ends,
// and leaves no lock behind. Where the caller sends its own command, see
// New, that takes up to 50 ms if Redis has just stopped answering.
//
// ctx is also the parent of the lease's context; to bound only the wait, use
// WithWait. Where ctx shows that its caller holds the same key of the same
// Locker already, the lease is nested: it shares the lock of the outer lease, which
// stays locked when the nested lease is released. A nested lease is lost when the
// lease that holds the lock is lost, or when the release of that lease begins. A nested
// lease has to be released too: until then the outer lease keeps its memory.
//
// The error is an *Error of the kind ErrBusy or ErrWaitTimeout, ErrQueueFull,
// ErrOverloaded, ErrUnavailable, ErrClosed, ErrNoKey or ErrInvalidKey, or for a
// nested lease ErrNoFence. If ctx ended the wait, it also is ctx's error. A nil ctx
// panics.
func (l *Locker) Lock(ctx context.Context, key string) (*Lease, error) {
	return l.acquire(ctx, key, l.waitOr(engine.WaitForever), &Lease{})
}

// TryLock takes the lock of a key if it is free, and never waits for another
// to release it. It returns what Lock does.
func (l *Locker) TryLock(ctx context.Context, key string) (*Lease, error) {
	return l.acquire(ctx, key, 0, &Lease{})
}

// waitOr returns the wait that was set, or the fallback.
func (l *Locker) waitOr(fallback time.Duration) time.Duration {
	if l.settings.wait == waitUnset {
		return fallback
	}
	return l.settings.wait
}

// acquire takes one key, waiting at most so long, and makes an empty lease that of
// it.
func (l *Locker) acquire(ctx context.Context, key string, wait time.Duration, lease *Lease) (*Lease, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if outer := outerLease(ctx, l, key); outer != nil {
		if err := l.checkFence(outer); err != nil {
			return nil, err
		}
		if outer.nest(ctx, lease) {
			return lease, nil
		}
	}
	if err := l.take(ctx, key, wait, nil, lease); err != nil {
		return nil, refusalOf(err, l.settings.retryAfter)
	}
	return lease, nil
}

// take takes one key from the engine, for an attempt if there is one, and makes
// an empty lease that of it. The error is the engine's.
func (l *Locker) take(ctx context.Context, key string, wait time.Duration, a *engine.Attempt, lease *Lease) error {
	hold, err := l.engine.Acquire(ctx, engine.Request{
		Key:     key,
		TTL:     l.settings.ttl,
		Wait:    wait,
		Renew:   l.settings.renewal,
		MaxHold: l.settings.maxHold,
		Fencing: l.settings.fencing,
		Attempt: a,
	})
	if err != nil {
		return err
	}
	lease.locker, lease.key, lease.hold = l, key, hold
	lease.around, _ = FromContext(ctx)
	return nil
}

// checkFence refuses to nest under a lease without a fencing number what wants one.
func (l *Locker) checkFence(outer *Lease) error {
	if l.settings.fencing && outer.Fence() == 0 {
		return &Error{Kind: ErrNoFence}
	}
	return nil
}

// checkKey refuses what cannot be the key of a lock.
func checkKey(key string) error {
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
	errLeaseEnded = errors.New("a lease that the caller had already ended meanwhile")
)

// refusalOf words the engine's refusal as an error of this package.
func refusalOf(err error, retryAfter time.Duration) *Error {
	var refused *engine.Refusal
	if !errors.As(err, &refused) {
		return &Error{Kind: ErrUnavailable, RetryAfter: retryAfter, Cause: err}
	}
	e := &Error{Kind: kindOf(refused.Reason), RetryAfter: retryAfter}
	if isSettled(refused.Reason) {
		e.RetryAfter = 0
	}
	if isLoss(refused.Cause) {
		// Not the caller's context ended, but a lease under which it waited.
		// It is no ErrLost: nothing has run under the lock that was waited for.
		e.Cause = errors.Join(errLeaseEnded, refused.Fault)
		return e
	}
	e.Cause, e.ended = causes(refused), refused.Ended
	return e
}

// isSettled reports whether a request gets the same refusal whenever it comes.
func isSettled(reason engine.Reason) bool {
	return reason == engine.Mismatch || reason == engine.Interrupted || reason == engine.Sealed
}

// isLoss reports whether the cause of a context is the end of a lease.
func isLoss(cause error) bool { return errors.Is(cause, ErrLost) || errors.Is(cause, ErrClosed) }

// kindOf turns the engine's reason into an error of this package.
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
	case engine.Interrupted:
		return ErrInterrupted
	case engine.Sealed:
		return ErrUnreplayable
	case engine.ClosedDown:
		return ErrClosed
	case engine.Unavailable, engine.Done: // which has an answer, and is no refusal
	}
	return ErrUnavailable
}

// causes joins what lies behind a refusal: the end of the caller's context,
// the cause of that if it is another error, and the fault of Redis.
func causes(refused *engine.Refusal) error {
	switch {
	case refused.Ended == nil:
		return refused.Fault
	case errors.Is(refused.Cause, refused.Ended):
		return errors.Join(refused.Cause, refused.Fault)
	default:
		return errors.Join(refused.Ended, refused.Cause, refused.Fault)
	}
}

// causeOf turns the engine's loss into the cause of the lease's context.
func causeOf(loss engine.Loss) error {
	switch loss {
	case engine.NotLost:
		return nil
	case engine.MaxHoldExceeded:
		return ErrMaxHold
	case engine.Closed:
		return ErrClosed
	case engine.Expired, engine.Taken:
	}
	return ErrLost
}

package core

import (
	"errors"
	"time"
)

// The kinds of error that reqlock returns. Test for them with errors.Is. They
// reach the caller inside an *Error, which adds the cause and a hint when to
// try again. No error carries a token, an owner or a raw key.
var (
	// ErrBusy says that another request holds the lock, and that the caller
	// may not wait for it, or has waited long enough.
	ErrBusy = errors.New("reqlock: busy")
	// ErrWaitTimeout says that the lock was still held by another when the
	// caller's wait was over. It is an ErrBusy.
	ErrWaitTimeout error = &narrower{"reqlock: wait timed out", ErrBusy}
	// ErrQueueFull says that as many requests wait for this key as may.
	ErrQueueFull = errors.New("reqlock: queue full")
	// ErrOverloaded says that as many requests wait for this Locker's keys, of
	// all keys together, as may.
	ErrOverloaded = errors.New("reqlock: overloaded")

	// ErrNoKey says that the request has no key: it is empty or missing. A
	// request without a key is never run unlocked, and never shares one key
	// with the others that have none.
	ErrNoKey = errors.New("reqlock: no key")
	// ErrInvalidKey says that the key is there but cannot be used: too long,
	// with control characters, given twice, or of a type that is no key.
	ErrInvalidKey = errors.New("reqlock: invalid key")
	// ErrBodyTooLarge says that the body is over the limit up to which a key
	// function reads it.
	ErrBodyTooLarge = errors.New("reqlock: body too large")
	// ErrSkip is what a key function returns to run the request without a
	// lock, on purpose. It is not a failure and never reaches a client.
	ErrSkip = errors.New("reqlock: skip")

	// ErrUnavailable says that Redis could not be asked, or could not answer:
	// it is down, too slow, read-only, loading, or refuses the command. It is
	// never returned because another holds the lock.
	ErrUnavailable = errors.New("reqlock: redis unavailable")
	// ErrClosed says that the Locker is closed. It is an ErrUnavailable.
	ErrClosed error = &narrower{"reqlock: locker closed", ErrUnavailable}

	// ErrLost says that the lease ended before its holder did: it could not be
	// renewed in time, or the key in Redis is gone or another's. It is the
	// cause of the lease's context.
	ErrLost = errors.New("reqlock: lease lost")
	// ErrMaxHold says that the holder was given as long as WithMaxHold allows.
	// It is an ErrLost.
	ErrMaxHold error = &narrower{"reqlock: held too long", ErrLost}

	// ErrNoFence says that code asked for a fencing number, by WithFencing, under a
	// lease of the same key that has none. It is an error of the program: set
	// WithFencing for all who lock the key.
	ErrNoFence = errors.New("reqlock: WithFencing under a lease of the same key without a fencing number")

	// ErrMismatch says that an idempotency key came again with another payload.
	ErrMismatch = errors.New("reqlock: idempotency key used with another payload")
	// ErrInterrupted says that an earlier attempt with this idempotency key
	// died in the middle, so that nobody knows whether it took effect.
	ErrInterrupted = errors.New("reqlock: earlier attempt interrupted")
	// ErrUnreplayable says that the request was done, but that its answer
	// cannot be given again.
	ErrUnreplayable = errors.New("reqlock: completed, answer not replayable")
)

// An Error is what a Locker returns when a request does not get its lock.
// It is safe for concurrent use.
type Error struct {
	// Kind is one of the package's error values.
	Kind error
	// RetryAfter is how long a caller does well to wait before it tries again;
	// zero where trying again does not help.
	RetryAfter time.Duration
	// Cause is what lies behind the kind, such as the error of the Redis
	// client, or the end of the caller's context. It may be nil.
	Cause error

	// ended is the caller's ctx.Err(), if the end of its context ended the wait.
	ended error
}

// Error returns the text of the kind, and that of its cause if there is one.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Kind.Error()
	}
	return e.Kind.Error() + ": " + e.Cause.Error()
}

// Unwrap returns the kind and the cause, for errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// A narrower error is a special case of another one.
type narrower struct {
	text string
	wide error
}

func (e *narrower) Error() string { return e.text }

func (e *narrower) Unwrap() error { return e.wide }

// A keyError is an error of the user's own key function that is none of ours.
type keyError struct{ err error }

func (e *keyError) Error() string { return "reqlock: key function: " + e.err.Error() }

func (e *keyError) Unwrap() error { return e.err }

package core

import (
	"errors"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/kind"
)

// The kinds of error that reqlock returns. Test for them with errors.Is. The caller gets
// them inside an *Error, which adds the cause and says when to retry. No error contains a
// token or a raw key.
var (
	// ErrBusy says that another request holds the lock, and that the caller does not wait
	// for it, or has waited as long as it may.
	ErrBusy = errors.New("reqlock: busy")
	// ErrWaitTimeout says that another request still held the lock when the caller's wait
	// ended. It is an ErrBusy. It is also the kind if the caller's context had ended before the
	// call: the text of the Error says so.
	ErrWaitTimeout error = &narrower{"reqlock: wait timed out", ErrBusy}
	// ErrQueueFull says that the queue of the key is full: see WithMaxWaiters.
	ErrQueueFull = errors.New("reqlock: queue full")
	// ErrOverloaded says that the queues of all keys together are full: see
	// WithMaxTotalWaiters.
	ErrOverloaded = errors.New("reqlock: overloaded")

	// ErrNoKey says that the key of the request is empty or missing. A request without a
	// key never runs without a lock. Such requests do not share one lock either.
	ErrNoKey = kind.ErrNoKey
	// ErrInvalidKey says that the key cannot be used: it is too long, has control
	// characters, was given twice, or has a type that cannot be a key.
	ErrInvalidKey = kind.ErrInvalidKey
	// ErrBodyTooLarge says that the body is larger than the limit of a key that
	// reads it. An error that wraps it may name the limit by a method MaxBody() int64,
	// which the client gets.
	ErrBodyTooLarge = kind.ErrBodyTooLarge
	// ErrSkip is returned by a key to run the request without a lock. It is not
	// a failure, and a client never gets it.
	ErrSkip = errors.New("reqlock: skip")

	// ErrUnavailable says that Redis cannot be reached or did not execute the command: it
	// is down, too slow, read-only, loading, or refuses the command. Or a Sealer could not seal or
	// open an answer now. It never means that the lock is held.
	ErrUnavailable = errors.New("reqlock: redis unavailable")
	// ErrClosed says that the Locker is closed. It is an ErrUnavailable.
	ErrClosed error = &narrower{"reqlock: locker closed", ErrUnavailable}

	// ErrLost says that the lease ended before its release: it was not renewed in time,
	// or the key in Redis is gone or belongs to another holder. It is the cause of the
	// lease's context.
	ErrLost = errors.New("reqlock: lease lost")
	// ErrMaxHold says that the lease was held for as long as WithMaxHold allows. It is an
	// ErrLost.
	ErrMaxHold error = &narrower{"reqlock: held too long", ErrLost}

	// ErrHandedOver says that the holder has ended the lease by Lease.Handover. It is an ErrLost,
	// because code under the lease must not act any more. It is a cause of the lease's context.
	ErrHandedOver error = &narrower{"reqlock: lease handed over", ErrLost}

	// ErrNoLease says that Detach has found no lease in its context, or that Handover was called on a
	// nil Lease: the request was refused, or runs unlocked by ErrSkip or WithFailOpen.
	ErrNoLease = errors.New("reqlock: no lease in the context")

	// ErrUpgrade says that a nested lock asks for more than the outer lease of the same key
	// has: the key alone under a shared lease, fewer permits under a lease with more, or a
	// fencing number under a lease without one. To wait for it would be to wait for its own
	// request. It is a mistake in the program: the cause says which one.
	ErrUpgrade = errors.New("reqlock: a nested lock asks for more than the outer lease of the same key has")

	// ErrHiddenLease says that the caller's context is a *gin.Context or a fiber.Ctx that does not
	// carry the lease of its own request, so that the caller would wait for itself. It is a
	// mistake in the program: the text says what to write instead.
	ErrHiddenLease = errors.New("reqlock: the context of the framework hides the lease that its request has for this key: " +
		"pass c.Request.Context() (Gin) or c.Context() (Fiber) instead of c")

	// ErrMismatch says that an idempotency key was used again with another payload.
	ErrMismatch = errors.New("reqlock: idempotency key used with another payload")
	// ErrOutcomeUnknown says that an earlier attempt with this idempotency key failed, or
	// died before its end, so that it is unknown whether it took effect.
	ErrOutcomeUnknown = errors.New("reqlock: outcome unknown")
	// ErrUnreplayable says that the request was done, but its answer was not stored, or this process
	// cannot open it: see WithSealer.
	ErrUnreplayable = errors.New("reqlock: completed, answer not replayable")

	// ErrNotFound says that Redis has no record of an idempotent request: it has not
	// begun, was aborted, its record has expired, or the key is not that of the request. So
	// do not conclude that the request did not happen: EndpointKey cannot check the route
	// and the parts.
	ErrNotFound = errors.New("reqlock: no record of the request")
	// ErrChanged says that Resolve has changed nothing, because the request is no longer as
	// the operator saw it: another attempt has begun, or the outcome is known. Call ReadRecord
	// again. Of Accept it says that the key does not wait for the ticket any more.
	ErrChanged = errors.New("reqlock: the request has changed since it was seen, or has an outcome")
)

// An Error is returned by a Locker if a request does not get its lock.
// It is safe for concurrent use.
type Error struct {
	// Kind is one of the package's error values.
	Kind error
	// RetryAfter is how long the caller should wait before it retries. It is zero where a
	// retry does not help.
	RetryAfter time.Duration
	// Cause is the reason, such as the error of the Redis client, or the end of the
	// caller's context. It may be nil.
	Cause error

	// ended is the caller's ctx.Err(), if the end of that context ended the wait.
	ended error
	// early says that the caller's context had ended before the call.
	early bool
	// attempt says that the request is idempotent.
	attempt bool
	// first is the reference of the attempt because of which the request is refused; "" is none.
	first string
	// requests are the settings of the Locker, for RefusalOf; nil if the error is of no Locker.
	requests *bridge.Settings
}

// Error returns the text of the kind, and the text of the cause if there is one. If the caller's
// context had ended before the call, the text says that instead of the kind: the caller has not waited.
func (e *Error) Error() string {
	if e.early {
		return "reqlock: the context had ended before the call: " + e.Cause.Error()
	}
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

// A narrower error is a special case of another error.
type narrower struct {
	text string
	wide error
}

func (e *narrower) Error() string { return e.text }

func (e *narrower) Unwrap() error { return e.wide }

// A keyError is an error of a key of the program that is not one of reqlock's.
type keyError struct{ err error }

func (e *keyError) Error() string { return "reqlock: key function: " + e.err.Error() }

func (e *keyError) Unwrap() error { return e.err }

// join is errors.Join with a text of one line, because a log has one line for each event. A
// single error is returned as it is.
func join(errs ...error) error {
	all := &joined{}
	for _, err := range errs {
		if err != nil {
			all.errs = append(all.errs, err)
		}
	}
	switch len(all.errs) {
	case 0:
		return nil
	case 1:
		return all.errs[0]
	}
	return all
}

// A joined error is two or more errors. It is a pointer, so that it can be compared.
type joined struct{ errs []error }

// Error returns the texts of all errors.
func (j *joined) Error() string {
	texts := make([]string, len(j.errs))
	for i, err := range j.errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors, for errors.Is and errors.As.
func (j *joined) Unwrap() []error { return j.errs }

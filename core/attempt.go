package core

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"

	"github.com/reqlock/reqlock/internal/engine"
)

// attemptMark stands before the key of an attempt, so that it shares nothing
// with the lock of the same key.
const attemptMark = "i:"

// An Attempt is one run of an idempotent request, or the answer of the run that
// was done before. It is made by Begin.
//
// One that is to run holds a lock, and is ended by Commit, Seal, Abort or
// Interrupt: each of them frees the lock in the same step. Only the first of
// them does anything. Later calls wait for its end, as long as their ctx allows, and
// return the same error, also where the first call did not wait for it. An Attempt
// that is never ended keeps its key until its process ends. A nil ctx is the background
// context.
//
// All methods are safe for concurrent use.
type Attempt struct {
	locker   *Locker
	key      string // without the mark
	lease    *Lease // nil where there is an answer
	replay   []byte
	outer    *Attempt // of the same key, under which this one is nested
	decision atomic.Int32
}

// Begin begins an idempotent request: one that takes effect once for its key,
// however often it comes. It is what the Idempotent middlewares stand on.
//
// The key has a record in Redis, and a lock of its own, which Begin takes as
// Lock does, in the same round trip. The request is to run if the record says so:
// then the caller runs it under the context of the Attempt's Lease, and ends the
// Attempt. If an earlier request with this key is done, Replay has its answer, and
// there is nothing to run or to end. While another one runs, Begin waits as long as
// WithWait says; without WithWait it does not wait. Waiters get the answer as soon
// as it is committed.
//
// The fingerprint tells requests apart that come with the same key by mistake.
// It is short, such as a digest of the payload; an empty one is like any other.
//
// Within an attempt, under whose context Begin is called again with the same key
// of the same Locker, it returns an Attempt that is a part of that one. Its end does
// nothing to the outer one. If the outer one has ended by then, or has lost its lease,
// Commit, Seal, Abort and Interrupt of the inner one return the loss: ErrLost, or
// ErrClosed.
//
// The error is one of Lock's, or an *Error of the kind ErrMismatch where the key
// came with another fingerprint, ErrInterrupted where an earlier attempt died and
// WithInterrupted does not let another one run, or ErrUnreplayable where an
// earlier attempt is done whose answer was not kept. WithFailOpen does not matter
// to Begin. A Locker of NewQuorum begins nothing: the error is
// errors.ErrUnsupported.
func (l *Locker) Begin(ctx context.Context, key string, fingerprint []byte) (*Attempt, error) {
	if !l.KeepsRecords() {
		return nil, errNoRecords
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	marked := attemptMark + key
	if outer := outerLease(ctx, l, marked); outer != nil && outer.attempt != nil {
		if err := l.checkFence(outer); err != nil {
			return nil, err
		}
		if inner := outer.attempt.nest(ctx, l); inner != nil {
			return inner, nil
		}
	}
	a := &Attempt{locker: l, key: key, lease: &Lease{}}
	err := l.take(ctx, marked, l.waitOr(0), &engine.Attempt{
		Fingerprint: bytes.Clone(fingerprint),
		Keep:        max(l.settings.retention, l.settings.ttl),
		Rerun:       l.settings.interrupted == Rerun,
	}, a.lease)
	var refused *engine.Refusal
	switch {
	case err == nil:
		a.lease.attempt = a
		return a, nil
	case errors.As(err, &refused) && refused.Reason == engine.Done:
		return &Attempt{locker: l, key: key, replay: refused.Record}, nil
	default:
		return nil, refusalOf(err, l.settings.retryAfter)
	}
}

// nest returns the attempt for code that runs under this one already; nil if this one
// has ended.
func (a *Attempt) nest(ctx context.Context, l *Locker) *Attempt {
	inner := &Attempt{locker: l, key: a.key, lease: &Lease{}, outer: a}
	if !a.lease.nest(ctx, inner.lease) {
		return nil
	}
	inner.lease.attempt = inner
	return inner
}

// Key returns the key of the attempt as it was given to Begin, which is what
// Resolve takes; "" on a nil Attempt.
func (a *Attempt) Key() string {
	if a == nil {
		return ""
	}
	return a.key
}

// Replay returns the answer of the attempt that was done, as it was given to
// Commit, and true; false if this one is to run. Nobody may change its bytes.
func (a *Attempt) Replay() (record []byte, ok bool) { return a.replay, a.lease == nil }

// Number counts the attempts at the request, from 1. It is greater than 1 where
// those before it died, which WithInterrupted(Rerun) allows: what they have
// done may have to be looked for. It is 0 where there is an answer.
func (a *Attempt) Number() int {
	if a.lease == nil {
		return 0
	}
	return a.lease.hold.Number()
}

// Lease returns the lease of the lock under which the attempt runs; nil where
// there is an answer. Its Release does nothing: the lock is freed when the
// attempt ends. Its Key is that of the lock: "i:" and the key of the attempt.
// FromContext finds it, and AttemptFromContext the Attempt, in the lease's Context.
func (a *Attempt) Lease() *Lease { return a.lease }

// MaxRecord returns how many bytes Commit keeps, see WithMaxRecord.
func (a *Attempt) MaxRecord() int { return a.locker.settings.maxRecord }

// Commit ends the attempt: the request is done, and record is its answer, which
// every later request with the key gets. It is kept for as long as WithRetention
// says. A record of more than MaxRecord bytes is not kept; then Commit is Seal.
//
// Commit is tried for 2 s, whatever ctx says: ctx bounds only how long the caller
// waits for it. An attempt that has lost its lease is committed too, unless
// another one has begun since.
//
// The error is ErrLost if another attempt has begun, or may have: the record is gone
// and another holds the key, or it is damaged. It is ErrUnavailable if Redis did not
// take the record: then, as after a crash, nobody knows what became of the request,
// see WithInterrupted. It is ctx's error if ctx ended first, and an error of its own
// if the Attempt is not one to run.
func (a *Attempt) Commit(ctx context.Context, record []byte) error {
	if len(record) > a.MaxRecord() {
		return a.Seal(ctx)
	}
	return a.end(ctx, engine.Commit, bytes.Clone(record))
}

// Seal ends the attempt as Commit does, but its answer is not kept: later
// requests with the key get ErrUnreplayable. It returns what Commit does.
func (a *Attempt) Seal(ctx context.Context) error { return a.end(ctx, engine.Seal, nil) }

// Abort ends the attempt as if it had not begun: the next request with the key
// runs. Where an earlier attempt died, see Number, that stays known: then the next
// request gets what WithInterrupted says.
//
// The error is nil also where another attempt has begun: there is nothing to abort.
// It is ErrUnavailable if Redis did not take the abort, for which the caller does
// not wait as long as for a commit. Where Redis did not answer, the abort is sent
// again for about a minute: until it is taken, and for good if it never is, the
// attempt may look like one that died. Else the error is ctx's, or one of its own,
// as that of Commit is.
func (a *Attempt) Abort(ctx context.Context) error { return a.end(ctx, engine.Abort, nil) }

// Interrupt ends the attempt as a crash would: nobody knows what became of the
// request. WithInterrupted says what later requests with the key get.
//
// The error is nil also where the lease was lost before: the record is that of an
// attempt that died already. It is ErrUnavailable if Redis was not told, so that the
// lock may stay until its TTL. Else it is ctx's, or one of its own, as that of
// Commit is.
func (a *Attempt) Interrupt(ctx context.Context) error { return a.end(ctx, engine.Interrupt, nil) }

// end ends the attempt.
func (a *Attempt) end(ctx context.Context, ending engine.Ending, record []byte) error {
	switch {
	case a.lease == nil:
		return errNotRunning
	case a.outer != nil:
		return causeOf(a.lease.nested.Release())
	}
	ctx = orBackground(ctx)
	loss, err := a.lease.hold.End(ctx, ending, record)
	return a.lease.ended(ctx, loss, err)
}

var errNotRunning = errors.New("reqlock: the attempt has an answer and does not run")

// AttemptFromContext returns the attempt under which the code with this context
// runs: the innermost one, where there are several.
func AttemptFromContext(ctx context.Context) (*Attempt, bool) {
	lease, _ := FromContext(ctx)
	a := attemptOf(lease)
	return a, a != nil
}

// attemptOf returns the innermost attempt among a lease and those around it.
func attemptOf(lease *Lease) *Attempt {
	for ; lease != nil; lease = lease.around {
		if lease.attempt != nil {
			return lease.attempt
		}
	}
	return nil
}

// Resolve frees a key whose attempt died in the middle, so that requests with it
// do not get ErrInterrupted any more: the next one runs. The key is the one that
// was given to Begin, see Attempt.Key; those in events, and of leases, have "i:"
// in front. It is for an operator who has found out what became of the attempt,
// and that its process is gone: the commit of one that is only cut off is accepted
// until another attempt begins. A key whose request is done, or has not begun,
// stays as it is, and that is no error.
//
// The error is an *Error of the kind ErrBusy while an attempt runs: one that holds
// the key, or one of this Locker that has lost it and has not ended yet. Otherwise
// it is one of Lock's other kinds. If ctx ended before Redis answered, it also is
// ctx's error. On a Locker of NewQuorum it is errors.ErrUnsupported.
func (l *Locker) Resolve(ctx context.Context, key string) error {
	if !l.KeepsRecords() {
		return errNoRecords
	}
	if err := checkKey(key); err != nil {
		return err
	}
	mustContext(ctx)
	running, err := l.engine.Resolve(ctx, attemptMark+key)
	switch {
	case err != nil:
		return refusalOf(err, l.settings.retryAfter)
	case running:
		return &Error{Kind: ErrBusy, RetryAfter: l.settings.retryAfter}
	}
	return nil
}

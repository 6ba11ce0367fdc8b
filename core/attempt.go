package core

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"

	"github.com/reqlock/reqlock/internal/engine"
)

// attemptMark is the prefix of the key of an attempt's lock. It separates that lock from a
// plain lock with the same key.
const attemptMark = "i:"

// An Attempt is one run of an idempotent request, or the stored answer of an earlier run.
// Begin makes it.
//
// An Attempt that is to run holds a lock. Commit, Done, Abort and Unknown end it and free
// the lock in the same step. Only the first of these calls has an effect. Later calls wait
// until the first one is done, as long as their ctx allows, and return the same error, even
// if the first call did not wait. An Attempt that is never ended keeps its lock until its
// process ends. A nil ctx is the background context.
//
// All methods are safe for concurrent use.
type Attempt struct {
	locker   *Locker
	key      string // without attemptMark
	lease    *Lease // nil if the attempt is a replay
	replay   []byte
	outer    *Attempt // the attempt in which this one is nested; nil if none
	caller   callerContext
	within   []*engine.Nested // in the leases of other locks under which the caller runs
	decision atomic.Int32
	sealing  atomic.Pointer[sealing] // nil unless Commit has begun to seal the answer
}

// Begin begins an idempotent request, which takes effect once for its key, however often it
// is sent. The Idempotent middlewares use it.
//
// The key has a record and a lock in Redis. Begin takes the lock as Lock does, and reads the
// record in the same round trip:
//
//   - If the request is to run, the caller runs it under the context of the Attempt's Lease
//     and then ends the Attempt. That context has the values of ctx, but does not end with
//     it: see WithClientCancel.
//   - If an earlier request with the key is done, Replay returns its answer. There is nothing
//     to run or to end.
//   - While another request with the key runs, Begin waits. WithWait limits the wait; without
//     WithWait, Begin does not wait. Waiters get the answer as soon as it is committed.
//
// The fingerprint distinguishes requests that use the same key by mistake. It should be
// short, such as a digest of the payload. An empty fingerprint is compared as any other.
//
// Under the context of an attempt of the same key and Locker, Begin returns a nested
// Attempt. The end of a nested Attempt does not end the outer one. If the outer Attempt has
// ended or lost its lease, Commit, Done, Abort and Unknown of the nested Attempt return
// ErrLost or ErrClosed.
//
// The error is an error of Lock, or an *Error of one of these kinds: ErrMismatch if the key
// was used with another fingerprint, ErrOutcomeUnknown if an earlier attempt died and
// WithRerunUnknown does not allow another run, ErrUnreplayable if an earlier attempt is done
// and its answer was not stored, or this process cannot open it: see WithSealer. WithFailOpen has no effect on Begin. With WithPermits or
// WithShared, the error is another one: an idempotent request has its key alone. On a Locker of
// NewQuorum the error is errors.ErrUnsupported.
func (l *Locker) Begin(ctx context.Context, key string, fingerprint []byte) (*Attempt, error) {
	return l.begin(ctx, lockKey{Raw: key}, fingerprint)
}

// begin is Begin for a key with a name.
func (l *Locker) begin(ctx context.Context, key lockKey, fingerprint []byte) (*Attempt, error) {
	if !l.backend.keepsRecords() {
		return nil, errNoRecords
	}
	if err := checkKey(key.Raw); err != nil {
		err.attempt = true
		l.observeRefused(ctx, key, true, l.withRequests(err))
		return nil, err
	}
	if l.limitOf(key).IsShared() {
		l.observeRefused(ctx, key, true, errSharedAttempt)
		return nil, errSharedAttempt
	}
	marked := lockKey{Raw: attemptMark + key.Raw, Name: key.Name}
	if outer := heldLease(ctx, l, marked.Raw); outer != nil && outer.attempt != nil {
		if err := l.checkUpgrade(outer, engine.Exclusive); err != nil {
			return nil, l.refuseMistake(ctx, marked, true, err)
		}
		if inner := outer.attempt.nest(ctx, l); inner != nil {
			return inner, nil
		}
	}
	if hidesLease(ctx, l, marked.Raw) {
		return nil, l.refuseMistake(ctx, marked, true, &Error{Kind: ErrHiddenLease})
	}
	a := &Attempt{locker: l, key: key.Raw, lease: &Lease{}}
	parent := a.parentOf(ctx)
	err := l.take(ctx, parent, marked, l.waitOr(0), &engine.Attempt{
		Fingerprint: bytes.Clone(fingerprint),
		Keep:        max(l.settings.retention, l.settings.ttl),
		Rerun:       l.settings.rerunUnknown,
		Reference:   l.referenceOf(ctx),
	}, a.lease)
	if err == nil {
		a.lease.attempt = a
		return a, nil
	}
	a.leave()
	var refused *engine.Refusal
	switch {
	case errors.As(err, &refused) && refused.Reason == engine.Done && isSealed(refused.Record):
		return l.replaySealed(ctx, parent, marked, fingerprint, refused)
	case errors.As(err, &refused) && refused.Reason == engine.Done:
		return &Attempt{locker: l, key: key.Raw, replay: refused.Record}, nil
	default:
		refusal := l.withRequests(refusalOf(err, l.settings.retryAfter))
		refusal.attempt = true
		return nil, refusal
	}
}

// nest returns a nested attempt of this one, or nil if this attempt has ended.
func (a *Attempt) nest(ctx context.Context, l *Locker) *Attempt {
	inner := &Attempt{locker: l, key: a.key, lease: &Lease{}, outer: a}
	if !a.lease.nest(ctx, inner.lease) {
		return nil
	}
	inner.lease.attempt = inner
	return inner
}

// Key returns the key that was given to Begin. ReadRecord and Resolve take the same key. It is ""
// on a nil Attempt.
func (a *Attempt) Key() string {
	if a == nil {
		return ""
	}
	return a.key
}

// Replay returns true and the answer that an earlier attempt gave to Commit. The caller must
// not change its bytes. Replay returns false if this attempt is to run.
func (a *Attempt) Replay() (answer []byte, ok bool) { return a.replay, a.lease == nil }

// Number counts the attempts at the request, from 1. It is greater than 1 if earlier
// attempts died and WithRerunUnknown allows this one: the handler may have to find out
// what they did. It is 0 if the attempt is a replay.
func (a *Attempt) Number() int {
	if a.lease == nil {
		return 0
	}
	return a.lease.hold.Number()
}

// Lease returns the lease under which the attempt runs, or nil if the attempt is a replay.
// Release on it does nothing: the end of the attempt frees the lock. Its Key is "i:" and the
// key of the attempt. In its Context, LeaseFromContext finds the lease and AttemptFromContext
// finds the Attempt.
func (a *Attempt) Lease() *Lease { return a.lease }

// Commit ends the attempt: the request is done, with this answer. Later requests with the key
// get the answer, for the time of WithRetention. An answer of more than WithMaxAnswer bytes is
// not stored; then Commit does what Done does. So it does with WithoutAnswer. An answer that begins with
// "\x00sealed" counts as a sealed one: without WithSealer, copies get ErrUnreplayable.
//
// With WithSealer, Commit seals the answer first, also if ctx ends, for at most the time of
// WithSealTimeout. If that fails, it is as if Redis had not accepted the answer, without a retry before
// Commit returns.
//
// Commit is retried for 2 s, even if ctx ends. ctx limits only how long the caller waits. An
// attempt that has lost its lease is committed too, unless another attempt has begun since.
//
// If Redis does not accept the answer in this time, Commit returns ErrUnavailable, and goes on
// in the background: until Redis accepts the answer, also if it has lost all data; until another
// attempt has begun or an operator has resolved the request; at the latest for the time of
// WithRetention, or until the end of Close. A Committed event with Repeated reports the end.
// Until then, Begin in this process returns the answer for the same fingerprint, and
// ErrUnavailable for another one, or if this process knows of another attempt since the lease
// was lost. WithRetention counts from the acceptance. WithOpenCommits limits such commits.
//
// The error is ErrLost if another attempt has begun or may have begun: the record is
// damaged, or it is gone and the key is locked by another holder. The error is
// ErrUnavailable if Redis did not accept the answer: then the outcome is unknown to other
// processes, as after a crash, see WithRerunUnknown. It is ctx's error if ctx ended first. If
// the Attempt is a replay, there is another error.
func (a *Attempt) Commit(ctx context.Context, answer []byte) error {
	if s := &a.locker.settings; !s.withoutAnswer && len(answer) <= s.maxAnswer {
		answer = bytes.Clone(answer)
	}
	return a.commitOwned(ctx, answer)
}

// commitOwned is Commit without a copy of the answer, whose bytes the caller must not change any
// more.
func (a *Attempt) commitOwned(ctx context.Context, answer []byte) error {
	s := &a.locker.settings
	switch {
	case s.withoutAnswer || len(answer) > s.maxAnswer:
		return a.Done(ctx)
	case s.sealer != nil && a.lease != nil && a.outer == nil:
		return a.commitSealed(ctx, answer)
	}
	return a.end(ctx, engine.EndCommit, answer)
}

// Done ends the attempt as Commit does, but stores no answer: later requests with the key
// get ErrUnreplayable. It returns the same errors as Commit.
func (a *Attempt) Done(ctx context.Context) error { return a.end(ctx, engine.EndDone, nil) }

// Abort ends the attempt as if it had not begun: the next request with the key runs.
// Exception: if an earlier attempt died (see Number), the next request gets what
// WithRerunUnknown says.
//
// The error is also nil if another attempt has begun, because there is nothing to abort. It
// is ErrUnavailable if Redis did not accept the abort; the caller waits for a shorter time
// than for a commit. If Redis did not reply, the abort is sent again for about a minute.
// Until Redis accepts it, the attempt may look like one that died: a later request gets
// ErrUnavailable in this process, and ErrOutcomeUnknown in another one. If Redis never accepts
// it, all processes return ErrOutcomeUnknown. Otherwise the error is ctx's error, or the error for a
// replay, as for Commit.
func (a *Attempt) Abort(ctx context.Context) error { return a.end(ctx, engine.EndAbort, nil) }

// Unknown ends the attempt as a crash would: the outcome of the request is unknown, and the
// observers get OutcomeUnknown. WithRerunUnknown says what later requests with the key get.
//
// cause says why, such as "the handler panicked". It is Err of the event, which an operator reads
// in a log, so it should contain nothing from the request. A nil cause says that the attempt was
// ended by Unknown.
//
// The error is also nil if the lease was lost before, because the record then already
// belongs to an attempt that died. It is ErrUnavailable if Redis did not confirm, so that
// the lock may stay until its TTL ends. Otherwise it is ctx's error, or the error for a
// replay, as for Commit.
func (a *Attempt) Unknown(ctx context.Context, cause error) error {
	if a.lease != nil && a.outer == nil {
		a.lease.hold.SetCause(cause)
	}
	return a.end(ctx, engine.EndUnknown, nil)
}

// nameOutcome sets the name of an OutcomeUnknown, and of what ends it, if events have none.
func (a *Attempt) nameOutcome(name string) {
	if a.lease != nil && a.outer == nil {
		a.lease.hold.SetOutcomeName(name)
	}
}

// cutOff returns the refusal for the client of a handler that has given no answer because its
// context had ended, with that cause. It is what a copy gets: ErrOutcomeUnknown. If the attempt was
// aborted, so that a copy runs, it is ErrUnavailable with a RetryAfter, or ErrClosed after Close.
func (a *Attempt) cutOff(cause error, aborted bool) *Error {
	e := a.locker.withRequests(&Error{Kind: ErrOutcomeUnknown})
	if aborted {
		e.Kind, e.RetryAfter = ErrUnavailable, a.locker.settings.retryAfter
		if errors.Is(cause, ErrClosed) {
			e.Kind = ErrClosed
		}
	}
	return e
}

// end ends the attempt by one of the four endings.
func (a *Attempt) end(ctx context.Context, ending engine.Ending, answer []byte) error {
	switch {
	case a.lease == nil:
		return errNotRunning
	case a.outer != nil:
		return causeOf(a.lease.nested.Release())
	}
	ctx = orBackground(ctx)
	if err := a.awaitSealing(ctx); err != nil {
		return err
	}
	loss, err := a.lease.hold.End(ctx, ending, answer)
	a.leave()
	return a.lease.ended(ctx, loss, err)
}

var errNotRunning = errors.New("reqlock: the attempt has an answer and does not run")

// AttemptFromContext returns the attempt of the context, and true if there is one. If there
// are several, it returns the innermost attempt. It also finds the attempt of the request to which
// a *gin.Context or a fiber.Ctx belongs:
//
//	if attempt, ok := core.AttemptFromContext(ctx); ok {
//		attempt.Decide(core.EndUnknown)
//	}
func AttemptFromContext(ctx context.Context) (*Attempt, bool) {
	lease, _ := LeaseFromContext(ctx)
	a := attemptOf(lease)
	return a, a != nil
}

// attemptOf returns the attempt of the lease or of its nearest parent that has one, or nil.
func attemptOf(lease *Lease) *Attempt {
	for ; lease != nil; lease = lease.parent {
		if lease.attempt != nil {
			return lease.attempt
		}
	}
	return nil
}

package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/reqlock/reqlock/internal/engine"
)

// A Resolution says what an operator has found out about a request with an unknown outcome:
// NotDone, Done or Answered.
type Resolution struct {
	how    resolutionKind
	answer Answer
}

// A resolutionKind is the kind of a Resolution.
type resolutionKind int

const (
	noResolution resolutionKind = iota
	notDone
	done
	answered
)

// NotDone says that the request did not take effect: the next request with the key runs.
func NotDone() Resolution { return Resolution{how: notDone} }

// Done says that the request took effect: later requests with the key do not run, and get
// ErrUnreplayable.
func Done() Resolution { return Resolution{how: done} }

// Answered says that the request took effect, and what its answer is: later requests with
// the key get that answer. The adapter of the route makes it.
func Answered(answer Answer) Resolution { return Resolution{answered, answer} }

// An Answer is the answer to an idempotent request, in the form in which it is stored: see
// Answered. NewAnswer of nethttplock, for each HTTP framework, and of grpclock make one, under the
// same filter as for the answer of a handler. The zero Answer is none. An Answer prints its size
// alone, because its bytes must not get into logs by accident.
type Answer struct{ bytes string }

// String returns the size of the answer.
func (a Answer) String() string { return fmt.Sprintf("reqlock.Answer(%d bytes)", len(a.bytes)) }

// GoString returns the same as String, for %#v.
func (a Answer) GoString() string { return a.String() }

// LogValue returns the same as String, for package slog.
func (a Answer) LogValue() slog.Value { return slog.StringValue(a.String()) }

// Resolve ends the unknown outcome of an idempotent request, as an operator says. Find out
// what the attempt did, and then:
//
//	record, err := locks.ReadRecord(ctx, key)
//	// record.State is StateUnknown: look for the charge
//	err = locks.Resolve(ctx, key, core.Done(), record.Attempt)
//
// The key is the argument of Begin: see ReadRecord. Keys in events and leases have
// "i:" in front. seen is the attempt that the operator has looked at. Resolve changes the
// record only if it is still that of this attempt, and its outcome is still unknown.
//
// After Done and Answered, copies of the request get what Resolution says, for the time of
// WithRetention of this Locker from now on. Other requests with the key still get ErrMismatch.
// If the process of the attempt was only cut off, its commit is refused with ErrLost. Exception:
// after NotDone, the commit is accepted if Redis has lost the record, or, with WithRerunUnknown,
// if a later attempt had been aborted before. A refused commit shows that the request did take
// effect, so before NotDone, find out that the process has ended. A repeated call with the same
// arguments returns nil, except that a repeated NotDone returns ErrNotFound, or ErrChanged if
// another attempt has begun, and that a repeated Answered with WithSealer returns ErrChanged.
//
// NotDone and Done also end the state StateDamaged. Such a record may lack the fingerprint, so
// after Done each request with the key is a copy, and Answered gets ErrChanged.
//
// The error is an *Error of one of these kinds, and then nothing has changed: ErrNotFound if
// there is no record of the request. ErrBusy while an attempt runs: an attempt that holds the
// key, or an attempt of this Locker that has lost its lease and has not ended. ErrChanged if
// the record is no longer as it was seen: another attempt has begun, or the outcome is known.
// Otherwise the error is one of Lock's other kinds. If it is unknown whether the resolution has
// taken effect, the error is ErrUnavailable and its text says so: call ReadRecord. If ctx ended
// before Redis replied, the error is also ctx's error. A zero Resolution, Answer or AttemptID, and an answer of more than
// WithMaxAnswer bytes or with WithoutAnswer, are other errors. On a Locker of NewQuorum the error is
// errors.ErrUnsupported.
//
// Observers receive an OperatorResolved: see AsOperator. For it, Resolve reads the record first.
func (l *Locker) Resolve(ctx context.Context, key string, resolution Resolution, seen AttemptID) error {
	if !l.backend.keepsRecords() {
		return errNoRecords
	}
	if err := checkKey(key); err != nil {
		return err
	}
	mustContext(ctx)
	request, err := l.resolveRequest(key, resolution, seen)
	if err != nil {
		return err
	}
	if l.settings.sealer != nil && request.Resolution == engine.ResolveAnswered {
		if err := l.sealResolution(ctx, &request); err != nil {
			return err
		}
	}
	before := l.stateBefore(ctx, request)
	status, err := l.engine.Resolve(ctx, request)
	if err != nil {
		refusal := l.withRequests(refusalOf(err, l.settings.retryAfter))
		var refused *engine.Refusal
		if errors.As(err, &refused) && refused.MayBeApplied() {
			refusal.Cause = fmt.Errorf("the resolution may have taken effect: %w", refusal.Cause)
			l.observeResolved(ctx, request, before, refusal)
		}
		return refusal
	}
	switch status {
	case engine.NoRecord:
		return l.withRequests(&Error{Kind: ErrNotFound})
	case engine.StillRunning:
		return l.withRequests(&Error{Kind: ErrBusy, RetryAfter: l.settings.retryAfter})
	case engine.Changed:
		return l.withRequests(&Error{Kind: ErrChanged})
	case engine.Resolved:
		l.observeResolved(ctx, request, before, nil)
	}
	return nil
}

// resolveRequest checks the arguments of Resolve, and returns the request to the engine.
func (l *Locker) resolveRequest(key string, resolution Resolution, seen AttemptID) (r engine.ResolveRequest, err error) {
	r.Key, r.Seen = attemptMark+key, seen.digest
	r.Keep = max(l.settings.retention, l.settings.ttl)
	switch resolution.how {
	case noResolution:
		return r, errors.New("reqlock: Resolve: the resolution is empty: use NotDone, Done or Answered")
	case notDone:
		r.Resolution = engine.ResolveNotDone
	case done:
		r.Resolution = engine.ResolveDone
	case answered:
		r.Resolution, r.Record = engine.ResolveAnswered, []byte(resolution.answer.bytes)
		if size := len(r.Record); size == 0 {
			return r, errors.New("reqlock: Resolve: the answer is empty: make it with NewAnswer of the route's adapter")
		} else if l.settings.withoutAnswer {
			return r, errors.New("reqlock: Resolve: the locker stores no answers, because of WithoutAnswer: use Done")
		} else if size > l.settings.maxAnswer {
			return r, fmt.Errorf("reqlock: Resolve: the answer has %d bytes, more than the %d of WithMaxAnswer: use Done", size, l.settings.maxAnswer)
		}
	}
	if seen == (AttemptID{}) {
		return r, errors.New("reqlock: Resolve: seen is empty: use Attempt of the Record that you have looked at")
	}
	return r, nil
}

package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/reqlock/reqlock/internal/engine"
)

// A sealing is a Commit that seals its answer: closed when the attempt is about to end. Meanwhile the
// attempt keeps its lease.
type sealing chan struct{}

// awaitSealing waits until no Commit seals its answer any more. The error is ctx's.
func (a *Attempt) awaitSealing(ctx context.Context) error {
	s := a.sealing.Load()
	if s == nil {
		return nil
	}
	select {
	case <-*s:
		return nil
	default:
	}
	select {
	case <-*s:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// bindingOf returns the binding of the answers of a record: see Sealer.
func (l *Locker) bindingOf(marked string, fingerprint []byte) []byte {
	return bindingOf(l.settings.prefix+marked, fingerprint)
}

// commitSealed is commitOwned with a Sealer, for an attempt that runs.
func (a *Attempt) commitSealed(ctx context.Context, answer []byte) error {
	ctx = orBackground(ctx)
	own := make(sealing)
	if !a.sealing.CompareAndSwap(nil, &own) {
		return a.end(ctx, engine.EndCommit, nil) // waits for the Commit before, and returns its result
	}
	defer close(own)
	s, binding := &a.locker.settings, a.locker.bindingOf(attemptMark+a.key, a.lease.hold.Fingerprint())
	sealed, err := s.seal(context.WithoutCancel(ctx), answer, binding)
	var loss engine.Loss
	if err == nil {
		loss, err = a.lease.hold.End(ctx, engine.EndCommit, sealed)
	} else {
		again := func(ctx context.Context) ([]byte, error) { return s.seal(ctx, answer, binding) }
		loss, err = a.lease.hold.EndUnsealed(ctx, answer, again, err)
	}
	a.leave()
	return a.lease.ended(ctx, loss, err)
}

// replaySealed returns the attempt that is the replay of a sealed answer, and observes the result. The
// error is an *Error.
func (l *Locker) replaySealed(
	ctx, parent context.Context, marked lockKey, fingerprint []byte, refused *engine.Refusal,
) (*Attempt, error) {
	event := l.eventOf(Replayed, marked, nil)
	event.Idempotent, event.Waited, event.Queued, event.First = true, refused.Waited, refused.Queued, refused.First
	answer, err := l.settings.open(ctx, refused.Record, l.bindingOf(marked.Raw, fingerprint))
	if err == nil {
		l.settings.notifyFrom(parent, event)
		return &Attempt{locker: l, key: marked.Raw[len(attemptMark):], replay: answer}, nil
	}
	refusal := &Error{Kind: ErrUnreplayable, Cause: err, attempt: true}
	if why := (*unopened)(nil); errors.As(err, &why) {
		l.warn(unopenedKey{event.Name, why.keyID}, fmt.Errorf("reqlock: copies of %q get completed_unreplayable: %w", event.Name, err))
	} else {
		refusal = unavailable(err)
		refusal.RetryAfter, refusal.attempt = l.settings.retryAfter, true
		if !isLoss(context.Cause(ctx)) {
			refusal.ended = ctx.Err()
		}
	}
	refusal.first = refused.First
	event.Kind, event.Err = Refused, l.withRequests(refusal)
	l.settings.notifyFrom(parent, event)
	return nil, refusal
}

// An unopenedKey is what replaySealed warns of once.
type unopenedKey struct{ name, keyID string }

// sealResolution seals the answer of an operator. seen is the attempt that the operator has looked at,
// and its record has the fingerprint.
func (l *Locker) sealResolution(ctx context.Context, r *engine.ResolveRequest) error {
	found, err := l.engine.Outcome(ctx, r.Key)
	if err != nil {
		return l.withRequests(refusalOf(err, l.settings.retryAfter))
	}
	// If the record is of another attempt by now, Resolve changes nothing.
	r.Record, err = l.settings.seal(ctx, r.Record, l.bindingOf(r.Key, []byte(found.Fingerprint)))
	if err == nil {
		return nil
	}
	refusal := unavailable(err)
	refusal.RetryAfter, refusal.ended = l.settings.retryAfter, ctx.Err()
	return l.withRequests(refusal)
}

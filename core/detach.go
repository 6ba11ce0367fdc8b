package core

import (
	"context"
	"errors"
	"slices"

	"github.com/reqlock/reqlock/internal/engine"
)

// Detach takes over the locks of a handler, for work that goes on after the handler has answered:
//
//	work, err := core.Detach(r.Context())
//	if err != nil {
//		nethttplock.WriteError(w, r, err)
//		return
//	}
//	go func() {
//		defer func() { _ = work.Release(context.Background()) }()
//		export(work.Context())
//	}()
//	w.WriteHeader(http.StatusAccepted)
//
// The locks stay held until Release on the LeaseSet, whatever becomes of the handler: what releases
// them when the handler returns or panics does nothing any more. The work runs in the Context of the
// LeaseSet. It has the values of ctx, and its leases are in it. It does not end with ctx. It ends as the
// context of a lease does: when a lock is lost, by Close, at the Release, and after WithMaxHold, which
// counts from the grant. Each lock needs WithMaxHold, so that work that hangs does not keep it for
// ever. Close waits for the work as for a handler.
//
// The handler has no lock any more. Its context goes on until the handler returns, and does not end
// with the locks. Under it, a lock of the same key is a new one, which waits for the work.
//
// Detach takes all locks of ctx: of each middleware and each Lock around the caller, and all keys of
// All. With an error it takes none:
//
//   - ErrNoLease: ctx has no lease.
//   - ErrLost, ErrMaxHold or ErrClosed: a lease has ended. A goroutine that calls Detach after its
//     handler has returned gets ErrLost, so call Detach in the handler.
//   - ErrHiddenLease: ctx is a *gin.Context or a fiber.Ctx, or derived from one. The framework uses it
//     again for other requests.
//   - Another error, for a mistake in the program: a lock has no WithMaxHold, is detached already, or is
//     that of an Attempt, which ends with its answer. The observers get a Warned event of each mistake,
//     once.
//
// The values of ctx are the caller's affair: read what belongs to the request before the handler
// returns. Detach is safe for concurrent use. A nil ctx panics.
func Detach(ctx context.Context) (*LeaseSet, error) {
	mustContext(ctx)
	s, err := detach(ctx)
	if lease, found := LeaseFromContext(ctx); found && err != nil && !isLoss(err) {
		lease.locker.warn(err, err)
	}
	return s, err
}

// detach is Detach without a Warned event.
func detach(ctx context.Context) (*LeaseSet, error) {
	if requestContext(ctx) != nil {
		return nil, errDetachHidden
	}
	if lease, found := leaseOf(ctx); found {
		lease = lease.outermost()
		lease.locker.detaching.Lock()
		defer lease.locker.detaching.Unlock()
	}
	held, err := detachable(ctx)
	if err != nil {
		return nil, err
	}
	s := &LeaseSet{ctx: context.WithoutCancel(ctx)}
	for i, lease := range held {
		detached := lease.detach(s)
		switch {
		case detached != nil:
		case i == 0: // nothing is taken
			_, err := lease.checkDetach()
			return nil, err
		default: // the lease has ended at this moment, and so has its context
			detached = lease
		}
		s.taken = append(s.taken, detached)
		s.ctx = detached.Context() //nolint:fatcontext // one level for each key, so that each loss ends the last context
	}
	s.nameAs(ctx, held)
	return s, nil
}

// detachable returns the leases of ctx, one for each lock, the outermost first.
func detachable(ctx context.Context) (held []*Lease, err error) {
	innermost, found := leaseOf(ctx)
	if !found {
		return nil, ErrNoLease
	}
	for lease := innermost; lease != nil; lease = lease.parent {
		ended, failure := lease.checkDetach()
		switch {
		case ended && lease != innermost && ctx.Err() == nil: // the caller goes on without it
		case failure == nil:
			held = append(held, lease)
		case err == nil || lease.attempt != nil: // no option mends an attempt
			err = failure
		}
	}
	slices.Reverse(held)
	seen := map[*engine.Hold]bool{}
	held = slices.DeleteFunc(held, func(lease *Lease) bool { // nested leases
		again := seen[lease.hold]
		seen[lease.hold] = true
		return again
	})
	return held, err
}

// outermost returns the outermost lease around the lease. All calls of Detach that could take the lease
// find the same one.
func (l *Lease) outermost() *Lease {
	for l.parent != nil {
		l = l.parent
	}
	return l
}

// checkDetach returns why Detach cannot take the lease, and whether the lease has ended.
func (l *Lease) checkDetach() (ended bool, err error) {
	loss := l.hold.EndedBy()
	if l.nested != nil {
		loss = l.nested.EndedBy()
	}
	switch {
	case l.hold.WasMoved():
		return true, errDetached
	case loss != engine.NotLost:
		return true, causeOf(loss)
	case l.attempt != nil:
		return false, errDetachAttempt
	case l.hold.IsDetached():
		return false, errDetached
	case l.hold.MaxHold() == 0:
		return false, errDetachMaxHold
	}
	return false, nil
}

// detach returns the lease with which the next one of s goes on under the lock, or nil if the lease has
// ended.
func (l *Lease) detach(s *LeaseSet) *Lease {
	hold := l.hold.Detach(s.ctx)
	if hold == nil {
		return nil
	}
	detached := &Lease{locker: l.locker, key: l.key, hold: hold}
	if n := len(s.taken); n > 0 {
		detached.parent = s.taken[n-1]
	}
	return detached
}

// nameAs makes LeaseFromContext and LeasesFromContext find in the context of s what they find in ctx. held
// are the leases of which those of s are made.
func (s *LeaseSet) nameAs(ctx context.Context, held []*Lease) {
	before := LeasesFromContext(ctx)
	s.named = make([]*Lease, len(before))
	for i, lease := range before {
		s.named[i] = s.insteadOf(lease, held)
	}
	main, _ := leaseOf(ctx)
	s.lead(s.insteadOf(main, held))
}

// insteadOf returns the lease of s that is made of the lease. It returns a lease that had ended before as
// it is, and nil for nil, the lease of a key that was skipped.
func (s *LeaseSet) insteadOf(lease *Lease, held []*Lease) *Lease {
	for i, h := range held {
		if lease != nil && h.hold == lease.hold {
			return s.taken[i]
		}
	}
	return lease
}

var (
	errDetachHidden error = &Error{Kind: ErrHiddenLease, Cause: errors.New(
		"Detach refuses c and contexts that are derived from it, because the framework uses c again for other requests")}
	errDetached      = errors.New("reqlock: Detach: the locks of this context are detached already")
	errDetachAttempt = errors.New("reqlock: Detach: an idempotent request ends with its answer, and cannot be detached: " +
		"give the work a lock of its own")
	errDetachMaxHold = errors.New("reqlock: Detach: the lock has no limit for work that hangs: set WithMaxHold")
)

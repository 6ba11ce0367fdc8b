package core

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/internal/engine"
)

// Handover ends the lease, and returns a ticket with which one other process takes it over:
//
//	ticket, err := lease.Handover(ctx, time.Minute)
//	// put the ticket into a job; the worker calls locks.Accept(ctx, ticket)
//
// Until the ticket is accepted, the key stays locked for the grace, although nobody holds it. If nobody
// accepts, the key is free after that, and the queue goes on. So choose a grace above the time for
// which a job waits for its worker. To take the lock back, as after the job store has refused the job,
// accept the ticket and release the lease.
//
// The context of the lease ends with the cause ErrHandedOver before the command leaves, also if
// Handover then fails. So make it the last step under the lease, and go on with context.WithoutCancel.
// A later Release returns what Handover has returned.
//
// The error is ErrLost, ErrMaxHold, ErrClosed or ErrHandedOver if the lease had ended before, or if
// Redis has lost it. It is ErrUnavailable if Redis did not reply, or ctx's error if ctx ended before
// the reply: nobody gets the ticket then. The process frees the key in the background for up to 15 s,
// and it is free after the grace or the TTL at the latest. A nil Lease, that of a request without its
// lock, returns ErrNoLease. Other errors are for a mistake in the program, and leave the lease as it is: the grace is
// below 1 ms, or the lease is shared, nested, that of an Attempt, moved by Detach, or has no fencing
// number. A nil ctx is the background context.
//
// The next holder has a higher fencing number. Only a resource that checks it is safe from late writes
// of this one: see WithFencing. WithMinHold ends with the lease: that of the Locker which accepts the
// ticket counts from then.
func (l *Lease) Handover(ctx context.Context, grace time.Duration) (Ticket, error) {
	if l == nil {
		return Ticket{}, ErrNoLease
	}
	if err := l.checkHandover(grace); err != nil {
		return Ticket{}, err
	}
	ctx = orBackground(ctx)
	parts := ticketParts{key: l.key}
	_, _ = rand.Read(parts.secret[:]) // it never fails
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrHandedOver) && l.hold.EndedBy() == engine.NotLost {
		return Ticket{}, ctx.Err()
	}
	loss, err := l.hold.Handover(ctx, parts.token(), grace)
	if err := l.ended(ctx, loss, err); err != nil {
		return Ticket{}, err
	}
	return newTicket(parts), nil
}

// checkHandover returns the mistake because of which the lease cannot be handed over.
func (l *Lease) checkHandover(grace time.Duration) error {
	switch {
	case l.attempt != nil:
		return errHandoverAttempt
	case l.nested != nil:
		return errHandoverNested
	case l.Shared():
		return errHandoverShared
	case l.Fence() == 0:
		return errHandoverFence
	case l.hold.WasMoved():
		return errHandoverDetached
	}
	if err := checkUnit("Handover", grace, 0); err != nil {
		return err
	}
	if grace < time.Millisecond {
		return fmt.Errorf("reqlock: Handover: the grace %v is below 1ms", grace)
	}
	return nil
}

// Accept takes over the lease that the Handover of a ticket has ended, in any process with the same
// Redis and prefix. The lease is like one of Lock: it has the options of this Locker, WithMaxHold
// counts from now, ctx is the parent of its context, and its fencing number is higher than that of the
// lease before. It needs WithFencing.
//
// A ticket is good for one lease. The error is an *Error of the kind ErrChanged if the key does not
// wait for the ticket any more: it was accepted before, its grace is over, an operator has ended it,
// Redis has lost it, or it is of another Redis or prefix. It may have been accepted by this call, if the
// replies came after the end of the new lease. The caller has no lease then, and no later call succeeds.
// A caller that still has to do the work takes the lock by Lock.
//
// Accept waits for no other holder. If Redis does not reply, it tries again until ctx ends or the wait
// of WithWait is over, as Lock does, and finds what it has done before. If it gives up, the error is
// ErrUnavailable or one of Lock's other kinds, and the ticket may be used up: the lock is freed in the
// background, and is free after the grace or the TTL at the latest. The zero Ticket and a Locker
// without WithFencing are other errors. A nil ctx panics.
func (l *Locker) Accept(ctx context.Context, ticket Ticket) (*Lease, error) {
	mustContext(ctx)
	switch {
	case ticket.IsZero():
		return nil, errNoTicket
	case !l.settings.fencing:
		return nil, errAcceptFencing
	}
	parts := ticket.parts()
	if err := checkKey(parts.key); err != nil {
		return nil, l.withRequests(err)
	}
	outer, _ := leaseOf(ctx)
	l.beater.Begin()
	request := l.request(lockKey{Raw: parts.key}, l.waitOr(engine.WaitForever))
	request.Caller, request.Parent = l.caller(), ctx
	hold, err := l.engine.Accept(ctx, parts.token(), request)
	if err != nil {
		return nil, l.withRequests(refusalOf(err, l.settings.retryAfter))
	}
	return &Lease{locker: l, key: parts.key, hold: hold, parent: outer}, nil
}

// errTicketVoid is the ErrChanged of a ticket.
var errTicketVoid error = &narrower{"reqlock: the ticket is void", ErrChanged}

var (
	errHandoverAttempt = errors.New("reqlock: Handover: an idempotent request ends with its answer, and its lease cannot be handed over: " +
		"give the work a lock of its own")
	errHandoverNested   = errors.New("reqlock: Handover: the lease is nested: call Handover on the lease that it is nested in")
	errHandoverShared   = errors.New("reqlock: Handover: a shared lease cannot be handed over: let the other process take a lease of its own")
	errHandoverFence    = errors.New("reqlock: Handover: the lease has no fencing number: set WithFencing, which a quorum does not have")
	errHandoverDetached = errors.New("reqlock: Handover: Detach has moved the lease: call Handover on a lease of its LeaseSet")
	errNoTicket         = errors.New("reqlock: Accept: the ticket is empty: use the one that Handover has returned")
	errAcceptFencing    = errors.New("reqlock: Accept: the lease before had a fencing number, and this one would have none: set WithFencing")
)

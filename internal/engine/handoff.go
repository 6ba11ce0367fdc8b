package engine

import "time"

// The budget of local passing: after so many passes, or so long from the
// grant, the lease goes back to the store, so that other processes have their
// turn. Without a word from them, every lease is taken to be wanted.
const (
	maxPasses   = 64
	maxPassTime = 50 * time.Millisecond
)

// mayPass reports whether the lease may go to the next of the line without the
// store.
func (l *lease) mayPass(now time.Time) bool {
	return l.valid(now) && !l.extended &&
		l.passes < maxPasses && now.Sub(l.begun) < min(l.ttl/4, maxPassTime)
}

// next gives the line's lease, fresh from the store, to its first waiter, or
// back to the store.
func (l *line) next(handover Handover) {
	switch w := l.first; {
	case w == nil:
		l.free(nil)
	case w.hold.request.TTL > l.lease.ttl:
		// The waiter for whom it was asked has left, and this one needs longer.
		l.renewThenGrant(handover)
	default:
		l.grant(w, handover)
	}
}

// pass gives the lease that a holder gave back to the first waiter, or back to
// the store. It reports whether it stayed in this process.
func (l *line) pass(from *Hold) bool {
	now := time.Now()
	if l.first == nil || !l.lease.mayPass(now) {
		l.free(from)
		return false
	}
	l.lease.passes++
	if l.lease.suits(l.first.hold.request, now) {
		l.grant(l.first, Passed)
	} else {
		l.renewThenGrant(Passed)
	}
	return true
}

// grant makes the waiter the lease's holder. Each grant is a generation of its
// own: what an earlier holder does to its hold does not touch this one.
func (l *line) grant(w *waiter, handover Handover) {
	l.state = held
	l.unlink(w)
	h := w.hold
	h.lease = l.lease
	h.since = time.Now()
	h.handover = handover
	if handover == Free && w.queued {
		h.handover = Awaited
	}
	l.lease.holder = h
	l.engine.work.Add()

	h.expiry = time.AfterFunc(time.Until(l.lease.validUntil), h.expire)
	if h.request.MaxHold > 0 {
		h.overdue = time.AfterFunc(h.request.MaxHold, h.exceed)
	}
	if h.request.Renew {
		l.engine.renewals.schedule(l.lease, l.lease.sent.Add(h.request.TTL/3))
	} else {
		l.engine.renewals.cancel(l.lease)
	}
	close(w.news)
	l.refuseTries(&Refusal{Reason: Busy})
}

// renewThenGrant renews the lease for the first waiter before it gets it.
// While that goes on nobody holds the lease.
func (l *line) renewThenGrant(handover Handover) {
	l.state = passing
	lease, r, ctx := l.lease, l.first.hold.request, l.first.hold.parent
	lease.holder = nil
	l.engine.renewals.cancel(lease)
	lease.inFlight++
	l.engine.spawn(func() {
		sent, mine, err := l.engine.store.Renew(ctx, l.request(lease.token, r))
		l.shard.mu.Lock()
		defer l.shard.mu.Unlock()
		lease.landed()
		switch {
		case err != nil:
			l.doubt = faultOf(err)
			l.free(nil) // the lease may be anything now; ask anew
		case !mine:
			l.proceed()
		default:
			lease.raise(sent, r.TTL)
			if !lease.valid(time.Now()) {
				l.free(nil)
				return
			}
			l.next(handover)
		}
	})
}

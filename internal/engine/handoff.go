package engine

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// next gives the line's lease, fresh from the store, to its first waiter, or
// back to the store.
func (l *line) next(handover Handover, now time.Time) {
	switch w := l.first; {
	case w == nil, !alike(w.hold.request.Attempt, l.lease.attempt):
		l.free()
	case w.hold.request.TTL > l.lease.ttl, w.hold.request.Fencing && l.lease.fences.empty():
		// The waiter for whom it was asked has left, and this one needs more.
		l.renewThenGrant(handover)
	default:
		l.grant(w, handover, now)
	}
}

// mayPass reports whether the lease may go to the next of the line without the
// store. An attempt is begun in the store.
func (l *lease) mayPass(to *waiter, now time.Time) bool {
	return l.attempt == nil && to.hold.request.Attempt == nil &&
		l.valid(now) && !l.extended && !l.budget.over(l.ttl, now)
}

// pass gives the lease that a holder gave back to the first waiter. It reports
// false if it has to go back to the store.
func (l *line) pass() bool {
	if l.first == nil {
		return false
	}
	now := time.Now()
	if !l.lease.mayPass(l.first, now) {
		return false
	}
	l.lease.budget.passes++
	if l.lease.suits(l.first.hold.request, now) {
		l.grant(l.first, Passed, now)
	} else {
		l.renewThenGrant(Passed)
	}
	return true
}

// grant makes the waiter the lease's holder. Each grant is a generation of its
// own: what an earlier holder does to its hold does not touch this one.
func (l *line) grant(w *waiter, handover Handover, now time.Time) {
	l.state = held
	l.unlink(w)
	h := w.hold
	h.lease, h.token = l.lease, l.lease.token
	h.since = now
	h.number = l.lease.number
	h.handover = handover
	if handover == Free && w.queued {
		h.handover = Awaited
	}
	if h.request.Fencing {
		h.fence = l.lease.fences.draw()
	}
	l.lease.holder = h
	l.engine.work.Add()

	if h.request.MaxHold > 0 {
		h.overdue = time.AfterFunc(h.request.MaxHold, h.exceed)
	}
	if h.request.Renew && l.lease.awaits {
		l.engine.schedule.set(l.lease) // its turn to be renewed will come
	} else {
		l.lease.renewAt = time.Time{}
		l.renewFrom(l.lease.sent.Add(h.request.TTL / 3))
	}
	w.settle()
	l.runs(l.lease.attempt)
	l.refuseTries(&Refusal{Reason: Busy})
}

// renewThenGrant renews the lease for the first waiter before it gets it.
// While that goes on nobody holds the lease.
func (l *line) renewThenGrant(handover Handover) {
	l.state = passing
	lease, r := l.lease, l.first.hold.request
	lease.holder = nil
	l.engine.schedule.drop(lease)
	lease.inFlight++
	q := l.request(lease.token, r)
	q.Fences, q.Attempt = lease.fences.wanted(r, l.callers), lease.attempt
	l.engine.work.Add()
	l.engine.store.Renew(q, func(renewal store.Renewal, err error) {
		defer l.engine.work.Done()
		l.shard.mu.Lock()
		defer l.shard.mu.Unlock()
		lease.landed()
		switch {
		case err != nil:
			l.doubt = faultOf(err)
			l.free() // the lease may be anything now; ask anew
		case !renewal.Held && lease.attempt != nil:
			l.free() // which aborts the attempt: it has not run
		case !renewal.Held && l.engine.ballots:
			l.free() // a minority may have it still
		case !renewal.Held:
			l.proceed(true)
		default:
			lease.renewed(renewal, r.TTL)
			if r.Fencing && lease.fences.empty() { // the counter was lost, and the server's clock has stepped back
				lease.fences = newFences(renewal.Fence, renewal.Fences)
			}
			now := time.Now()
			if !lease.valid(now) {
				l.free()
				return
			}
			l.next(handover, now)
		}
	})
}

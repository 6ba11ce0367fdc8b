package engine

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// grantOrRelease gives a lease that the store has just granted or renewed to the first
// waiter, or back to the store.
func (q *queue) grantOrRelease(grant Grant, now time.Time) {
	switch w := q.first; {
	case w == nil, !sameAttempt(w.hold.request.Attempt, q.lease.attempt):
		q.releaseLease()
	case w.hold.request.TTL > q.lease.ttl, w.hold.request.Fencing && q.lease.fences.empty():
		// The waiter for which the queue asked has left, and this one needs more.
		q.renewThenGrant(grant)
	default:
		q.grant(w, grant, now)
	}
}

// mayPass reports whether the lease may go to the next waiter without a command. An
// attempt always needs the store, which keeps its record, and so does a single permit with
// fencing: its lease has only the number of its phase. In an outage the budget does not
// count: the store cannot give the key to another process.
func (l *lease) mayPass(to *waiter, outage bool, now time.Time) bool {
	return l.attempt == nil && to.hold.request.Attempt == nil && !to.hold.request.needsNewFence() &&
		l.valid(now) && !l.extended && (outage || !l.budget.isSpent(l.ttl, now))
}

// pass gives a lease that its holder has released to the first waiter. It reports false
// if the lease has to go back to the store. outage says that the store serves no command.
func (q *queue) pass(outage bool, now time.Time) bool {
	if q.first == nil {
		return false
	}
	q.noteOthersHere(now)
	if !q.lease.mayPass(q.first, outage, now) || !outage && q.yields(q.first) {
		return false
	}
	q.lease.budget.passes++
	if q.lease.suits(q.first.hold.request, now) {
		q.grant(q.first, Passed, now)
	} else {
		q.renewThenGrant(Passed)
	}
	return true
}

// noteOthersHere starts the budget of a lease if callers of this process with another limit
// wait for the key, or if another shared lease of this process has shown that others wait.
func (q *queue) noteOthersHere(now time.Time) {
	if q.othersWaitHere() || q.limit.IsShared() && !q.lease.sent.After(q.root.shared.othersWaited) {
		q.lease.othersWait = true
		q.lease.budget.start(now)
	}
}

// grant makes the waiter the holder of the lease. Each grant has its own Hold, so that
// later calls on an earlier hold do not change this one.
func (q *queue) grant(w *waiter, grant Grant, now time.Time) {
	q.setState(held)
	q.setAcquiring(false)
	q.remove(w)
	h := w.hold
	h.lease, h.token = q.lease, q.lease.token
	h.since = now
	h.number = q.lease.number
	h.grant = grant
	if grant == Free && w.queued {
		h.grant = Awaited
	}
	if h.request.Fencing {
		h.fence = q.lease.fences.draw(q.limit)
	}
	q.lease.holder = h
	if q.lease.attempt != nil {
		q.noteRival()
	}
	q.engine.work.Add()

	if h.request.MaxHold > 0 {
		h.maxHoldTimer = time.AfterFunc(h.request.MaxHold, h.onMaxHold)
	}
	if h.request.Renew && q.lease.awaitsRenewal {
		q.engine.schedule.set(q.lease) // the lease keeps its place among the waiting renewals
	} else {
		q.lease.renewAt = time.Time{}
		q.renewFrom(q.lease.sent.Add(h.request.TTL / 3))
	}
	w.settle()
	q.setRunning(q.lease.attempt, referenceOf(q.lease.attempt))
	if q.nowaiters > 0 { // most grants need no refusal
		q.refuseNowaiters(&Refusal{Reason: Busy, First: q.root.firstRunning()}, q.placesLeft())
	}
	q.balance()
}

// renewThenGrant renews the lease for the first waiter, and then grants it. Meanwhile
// the lease has no holder.
func (q *queue) renewThenGrant(grant Grant) {
	q.setState(passing)
	q.setAcquiring(true)
	lease, want := q.lease, q.first.hold.request
	lease.holder = nil
	q.engine.schedule.drop(lease)
	lease.inFlight++
	r := store.RenewRequest{
		Target: q.target(lease.token, want.TTL), Fences: lease.fences.toReserve(want, q.callers), Attempt: lease.attempt,
	}
	q.engine.work.Add()
	q.engine.store.Renew(r, func(renewal store.Renewal, err error) {
		defer q.engine.work.Done()
		q.shard.mu.Lock()
		defer q.shard.mu.Unlock()
		lease.renewalDone()
		switch {
		case err != nil:
			q.lastFault = store.FaultOf(err)
			q.releaseLease() // the state of the lease is unknown: release it and ask again
		case !renewal.Held && lease.attempt != nil:
			q.releaseLease() // aborts the attempt, which has not run
		case !renewal.Held && q.engine.ballots:
			q.releaseLease() // a minority of the servers may still have the token
		case !renewal.Held:
			q.endEpisode(true)
		default:
			lease.renewed(renewal, want.TTL)
			if want.Fencing && lease.fences.empty() { // the counter was lost, and the server's clock has stepped back
				lease.fences = newFences(renewal.Fence, renewal.Fences)
			}
			now := time.Now()
			if !lease.valid(now) {
				q.releaseLease()
				return
			}
			q.grantOrRelease(grant, now)
		}
	})
}

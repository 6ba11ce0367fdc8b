package engine

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// releaseLease gives the queue's lease back to the store.
func (q *queue) releaseLease() {
	if r, ready := q.prepareRelease(nil); ready {
		q.sendRelease(r)
	}
}

// prepareRelease starts to give the queue's lease back to the store. The release is
// sent after the renewals in flight have ended. last is the holder that gets the
// result; nil if there is none. The results are the request to send, and whether it can
// be sent now.
func (q *queue) prepareRelease(last *Hold) (r store.ReleaseRequest, ready bool) {
	lease := q.lease
	q.setState(releasing)
	q.running = nil
	q.setAcquiring(false)
	lease.holder, lease.last = nil, last
	q.engine.schedule.drop(lease)
	q.engine.work.Add()
	if lease.inFlight > 0 {
		lease.afterRenewals = func() { q.sendRelease(q.releaseRequest(lease)) }
		return r, false
	}
	return q.releaseRequest(lease), true
}

// releaseRequest returns the request that releases the lease. If callers wait in this
// process, it adds the token of the next episode to the end of the store's queue.
func (q *queue) releaseRequest(lease *lease) store.ReleaseRequest {
	next, keep := Request{TTL: lease.ttl}, lease.last.keepFor()
	if keep == 0 && q.isNeededFor(q.callers-q.nowaiters) && lease.attempt == nil && q.first.hold.request.Attempt == nil {
		next = q.first.hold.request
		q.rejoin = q.engine.newToken(q.limit)
		q.setAcquiring(true)
		q.listen() // for waiters that came while the release waited for renewals
	}
	q.recheck, q.handed = false, false
	r := store.ReleaseRequest{
		Target: q.target(lease.token, next.TTL), Claim: q.engine.claimOf(next.TTL),
		Rejoin: q.rejoin, NoWaiters: !lease.othersWait && !q.othersWaitHere() && !q.sharedWithOthers(), Apart: lease.apart,
		Keep: keep, Ticket: lease.last.ticketToken(),
	}
	r.Bound = q.engine.boundOf(lease.ttl)
	switch {
	case lease.attempt == nil:
	case lease.last == nil:
		r = EndAbort.applyTo(r, lease.attempt, nil)
	default:
		r = lease.last.ending.applyTo(r, lease.attempt, lease.last.record)
	}
	q.lastRelease = r
	return r
}

// sendRelease sends the release of the lease. If the store does not answer, discards
// resend the release until the lease ends, while the queue goes on; if the queue finds
// the token in the key, it releases it too. Exception: a Commit or Done is resent
// before the queue goes on.
func (q *queue) sendRelease(r store.ReleaseRequest) {
	if !r.Ending.IsFinal() {
		q.engine.store.Release(r, q.releaseDone)
		return
	}
	if u := q.lease.last.notSealed(); u != nil {
		go q.releaseDone(store.ReleaseResult{}, u.fault) // the caller may have the mutex
		return
	}
	q.engine.releaseUntil(r, time.Now().Add(commitTimeout), q.releaseDone)
}

// onReleased handles the store's reply to a release.
func (q *queue) onReleased(released store.ReleaseResult, err error) {
	defer q.engine.work.Done()
	var after callbacks
	q.shard.mu.Lock()
	q.completeRelease(q.lease, released, err, &after)
	q.shard.mu.Unlock()
	after.run(q.engine)
}

// completeRelease gives the result to the last holder, and starts the next episode.
func (q *queue) completeRelease(lease *lease, released store.ReleaseResult, err error, after *callbacks) {
	last := lease.last
	goesOn := err != nil && last != nil && q.keepOpen(last, q.lastRelease, err)
	p, aborted := keyToken{q.key, lease.token}, q.abortedAttempt()
	if err != nil && !goesOn || lease.seenAgain {
		q.engine.discardAsync(p, aborted, lease.validUntil)
	} else if aborted != nil {
		q.engine.discards.noteAborted(p, aborted)
	}
	lease.last = nil // the queue may live long
	if last != nil {
		if err == nil && released.Status == store.NotHeld && last.loss == NotLost {
			last.reportLoss(Taken, after)
		}
		last.stored = released.Record
		last.completeRelease(err, time.Now(), after)
	}
	if r := q.lastRelease; r.Ending.IsFinal() && err == nil && released.Record != store.NotStored {
		q.settleByVerdict(r.Attempt, verdictOf(r.Ending), r.Record, r.Attempt.Reference)
		q.sendOpenNow()
	}
	if err != nil {
		q.lastFault = store.FaultOf(err)
	}
	q.afterRelease(lease, released, err)
}

// afterRelease starts the next episode by the result of the release.
func (q *queue) afterRelease(lease *lease, released store.ReleaseResult, err error) {
	switch r := q.lastRelease; {
	case err != nil, released.Status == store.Unsure:
		// The token that rejoins may be in the store's queue, or in the key.
		if r.Rejoin == "" {
			q.endEpisode(true)
			return
		}
		q.contended = false
		q.resumeEpisode(r.Rejoin, true, 0)
	case released.Status == store.Kept:
		q.onKept(lease, r, released.Since)
	case released.Status == store.Handed && r.Rejoin != "":
		q.lastFault = nil
		q.noteContention()
		q.resumeEpisode(r.Rejoin, false, jitter(untilExpiry(r.Claim, recheckInterval)))
	default:
		if q.isRoot() && !q.isNeeded() {
			q.shard.noteContended(q.key, released.Status == store.Handed)
		}
		q.endEpisode(released.Status != store.Freed || r.Keep > 0)
	}
}

// onKept handles a release that left the key with this process. The key has a new lease
// under the token that rejoined. No other process waits, or one that did not keep a shared
// token waiting; that one asks again within a second, and hints then. The fencing numbers
// that are left stay with an exclusive lease. A shared one may begin a new phase, with a new
// number.
func (q *queue) onKept(old *lease, r store.ReleaseRequest, since time.Time) {
	granted := store.EnqueueRequest{Target: r.Target}
	granted.Token = r.Rejoin
	q.enterAsking(r.Rejoin)
	lease := newLease(q, granted.Target, nil, since)
	lease.apart = true
	if !lease.valid(lease.begun) {
		q.discardLateGrant(granted)
		q.ask()
		return
	}
	if !q.limit.IsShared() {
		lease.fences = old.fences
	}
	lease.noteStoreQueue(0, since)
	q.lastFault = nil
	q.lease = lease
	q.grantOrRelease(Passed, lease.begun)
}

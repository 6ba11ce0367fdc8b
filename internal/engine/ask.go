package engine

import (
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// errLateGrant is the fault of a grant that arrived after the end of its validity.
var errLateGrant = errors.New("the answer came too late to be of use")

// ask sends a request for the key to the store, for the first waiter. If no caller
// needs the queue, the episode ends. The queue is asking, and no other request is in flight.
//
// The reply goes to onAnswer. From there the queue grants the lease, or asks again: at
// once, or after a pause. Once the queue has a place in the store's queue, it asks
// again when a hint arrives, and when its pause ends.
func (q *queue) ask() {
	q.unwatch()
	if !q.isNeeded() {
		q.goIdle()
		return
	}
	if q.isTokenStale() {
		q.rotateToken()
	}
	if q.asksLater = q.mustAskLater(); q.asksLater || q.releasingToken {
		return
	}
	r := q.askRequest()
	if r.Join {
		q.listen()
		q.joined = true
		if !q.isListening() && !q.listenTimedOut {
			q.sendWhenListening(r)
			return
		}
	}
	q.send(r, q.enqueue)
}

// askRequest returns the store request for the first waiter, and counts it as work. It is sent as
// a Take or as an Enqueue.
func (q *queue) askRequest() store.EnqueueRequest {
	want := q.first.hold.request
	// Does another hold the key, or a dead token of this process? A shared request without the holder
	// costs another command if others wait for the key.
	r := store.EnqueueRequest{WithHolder: q.nowaiters > 0 || q.sharedWithOthers()}
	r.Target, r.Claim = q.target(q.token, want.TTL), q.engine.claimOf(want.TTL)
	r.Join = q.enqueue && q.callers > q.nowaiters && q.ticket == ""
	r.Apart, r.Fresh = !q.unsure, !q.unsure && !q.joined
	r.Ticket = q.ticket
	if want.Fencing {
		r.Fences = firstReservation(q.limit, q.callers)
	}
	r.Attempt = want.Attempt
	if q.engine.ballots {
		q.ballot = q.engine.newToken(q.limit)
		r.Waiter, r.Token = q.token, q.ballot
	}
	q.recheck, q.pauses.skipped = false, 0
	q.lastAsk = r
	q.engine.work.Add()
	return r
}

// send sends a request for the key. Only Enqueue grants shared leases, reserves fencing
// numbers, decides by the record of an attempt, and has ballots and tickets.
func (q *queue) send(r store.EnqueueRequest, enqueue bool) {
	if enqueue || r.Ticket != "" || r.Limit.IsShared() || r.Fences > 0 || r.Attempt != nil || r.Waiter != "" {
		q.engine.store.Enqueue(r, q.answerDone)
		return
	}
	q.engine.store.Take(store.TakeRequest{Target: r.Target, Inline: r.Inline, WithHolder: r.WithHolder}, q.answerDone)
}

// sendWhenListening sends the request as soon as the server has confirmed that this
// process listens. The store could skip the queue otherwise. It waits for one command
// bound at most, and only once in an episode: after that, the queue checks the key at
// short intervals.
func (q *queue) sendWhenListening(r store.EnqueueRequest) {
	ready := q.ready
	q.engine.spawn(func() {
		timer := time.NewTimer(r.Bound)
		defer timer.Stop()
		select {
		case <-ready:
		case <-timer.C:
		}
		q.shard.mu.Lock()
		defer q.shard.mu.Unlock()
		q.listenTimedOut = !q.isListening()
		if !q.listenTimedOut {
			q.recheck = false // the reply reports all that was missed until now
		}
		q.send(r, true)
	})
}

// onAnswer handles the store's reply to a request for the key.
func (q *queue) onAnswer(answer store.Answer, err error) {
	defer q.engine.work.Done()
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	defer q.balance() // of the present list, even if the queue is recycled
	q.ballot = ""
	if answer.SentTwice || err != nil && store.FaultOf(err).Unknown {
		q.unsure = true
		q.engine.discardLater(q.lastAsk)
	}
	switch r := q.lastAsk; {
	case err == nil && answer.Verdict != store.Undecided:
		q.onVerdict(r, answer)
	case err == nil && r.Ticket != "" && !answer.Granted:
		q.refuseAll(&Refusal{Reason: TicketUsed, Fault: errTicketUsed})
		q.ask() // no caller is left, so this ends the episode
	case err == nil && q.isOrphan(answer.Holder):
		q.releaseOrphan(r, answer.Holder)
	case err == nil && answer.HolderUnknown && q.nowaiters > 0:
		q.ask() // with the holder's token: a nowait caller is refused only if another holds the key
	case q.applyAnswer(r, answer, err):
	case err == nil && answer.SplitVote:
		q.pause(q.pauses.afterSplit())
	case err == nil && !r.Join:
		q.ask() // refused without a place in the store's queue: take one
	default:
		pause := q.pauses.after(answer, err, r.Join && !q.isListening())
		if q.isSteady(answer, err) {
			q.watch(answer.Remaining)
		} else {
			q.pause(pause)
		}
	}
}

// releaseOrphan releases a dead token of this process that was found in the key, and
// asks again. The release of that token was lost, and no holder has it, so this is not
// contention. From here on a resend of an earlier take may lock the key, so the queue
// asks with Enqueue, which raises the TTL.
func (q *queue) releaseOrphan(asked store.EnqueueRequest, orphan string) {
	q.releasedOrphan = orphan
	q.enqueue = true
	q.engine.work.Add()
	// Without Waiter: the waiter keeps its place in the store's queue.
	r := store.ReleaseRequest{Target: asked.Target, Claim: asked.Claim}
	r.Token, r.Limit = orphan, limitOf(orphan)
	r = EndAbort.applyTo(r, q.engine.discards.attemptOf(keyToken{q.key, orphan}), nil)
	q.engine.store.Release(r, func(store.ReleaseResult, error) {
		defer q.engine.work.Done()
		q.shard.mu.Lock()
		defer q.shard.mu.Unlock()
		q.ask()
	})
}

// applyAnswer applies the store's reply. It reports whether the queue need not ask
// again.
func (q *queue) applyAnswer(r store.EnqueueRequest, answer store.Answer, err error) (settled bool) {
	q.isStuck = err == nil && isStuck(answer)
	switch {
	case err != nil:
		q.noteFault(store.FaultOf(err))
	case answer.SplitVote && q.pauses.splits < maxSplits:
		q.lastFault = nil // no one holds the key, so no caller is refused yet
	case !answer.Granted:
		q.lastFault, q.running = nil, nil
		if answer.Running {
			q.setRunning(r.Attempt, answer.First)
			if !q.engine.hasIssued(answer.Holder) {
				q.noteRival()
			}
		}
		q.noteContention()
	default:
		lease := newLease(q, r.Target, r.Attempt, answer.Since)
		lease.apart = !q.unsure
		if lease.number, lease.before = answer.Number, answer.First; lease.number > 1 {
			q.noteRival() // also if it does not run: the store refuses the commit of the attempt before it
		}
		if !lease.valid(lease.begun) || q.committing > 0 {
			q.discardLateGrant(r)
			return q.releasingToken
		}
		lease.fences = newFences(answer.Fence, answer.Fences)
		lease.noteStoreQueue(answer.Waiting, answer.Since)
		q.lastFault, q.joined = nil, false
		q.lease = lease
		switch {
		case q.ticket != "":
			q.grantOrRelease(Accepted, lease.begun)
		case q.handed:
			q.grantOrRelease(Handed, lease.begun)
		default:
			if q.contended { // a hint was lost, or a holder is dead
				q.wakeOthers()
			}
			q.grantOrRelease(Free, lease.begun)
		}
		return true
	}
	return false
}

// noteContention notes that another holds the key. It refuses the nowait callers, and
// notifies the first of the others that it waits. If there is no room for it, the last
// waiter that allows no more waiters is refused.
func (q *queue) noteContention() {
	q.contended, q.enqueue = true, true
	if q.limit.IsShared() {
		q.root.shared.othersWaited = time.Now()
	}
	q.refuseNowaiters(q.held(Busy), q.undecided())
	w := q.firstUnqueued()
	if w == nil {
		return
	}
	if n := q.queuedForKey(); n > 0 && n == w.hold.request.MaxWaiters {
		q.refuseLast()
		if w.list == nil {
			return
		}
	}
	if refusal := q.markQueued(w); refusal != nil {
		q.refuse(w, refusal)
		return
	}
	if w.updates != nil {
		w.updates <- struct{}{} // does not block: the channel has room for one
	}
}

// noteFault notes that the store did not answer. It refuses the nowait callers, and those
// that end on a fault. The other callers wait on under the same token, unless the fault is permanent.
func (q *queue) noteFault(fault *store.Fault) {
	q.lastFault = fault
	if fault.Unknown {
		q.enqueue, q.joined = true, true
	}
	refusal := &Refusal{Reason: Unavailable, Fault: fault}
	q.refuseNowaiters(refusal, q.undecided())
	q.refuseIf(func(w *waiter) *Refusal {
		if w.endsOnFault || !fault.Temporary {
			return refusal
		}
		return nil
	})
}

// discardLateGrant releases a grant that arrived after the end of its validity. The
// token is dead, so the next request gets a fresh one. A ballot has a fresh token
// anyhow.
func (q *queue) discardLateGrant(r store.EnqueueRequest) {
	q.noteFault(&store.Fault{Temporary: true, Err: errLateGrant})
	if r.Attempt != nil {
		q.releaseThenAsk(r)
	} else {
		q.engine.discardAsync(keyToken{r.Key, r.Token}, nil, time.Now().Add(r.TTL))
	}
	q.enqueue, q.handed = true, false
	if r.Waiter == "" {
		q.token, q.joined, q.unsure = q.engine.newToken(q.limit), false, false
	}
}

// isOrphan reports whether the value found in the key is a dead token of this process
// that was not released in this episode yet.
func (q *queue) isOrphan(holder string) bool {
	return holder != q.releasedOrphan && q.engine.isDead(q.root, holder)
}

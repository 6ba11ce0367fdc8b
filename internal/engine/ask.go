package engine

import (
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// errTooSlow is the fault of a grant whose validity was over when it came.
var errLateGrant = errors.New("the answer came too late to be of use")

// ask puts a question to the store for the first of the line. If nobody waits,
// the episode ends. The line is asking, and no other question is under way.
//
// It goes on with heard, and from there to the grant, or back here: at once, or
// after a pause. Once the line stands in the store's line, it looks again when a
// hint tells it to, and when its patience is over.
func (q *queue) ask() {
	if q.first == nil {
		q.goIdle()
		return
	}
	if q.isTokenStale() {
		q.rotateToken()
	}
	if q.releasingToken {
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

// question returns the question for the first of the line. It counts as work.
func (q *queue) askRequest() store.Request {
	want := q.first.hold.request
	r := q.request(q.token, want)
	r.Join = q.enqueue && q.callers > q.nowaiters
	r.Look = q.nowaiters > 0 // is it another that holds the key, or an orphan?
	if want.Fencing {
		r.Fences = firstReservation(q.callers)
	}
	r.Attempt = want.Attempt
	if q.engine.ballots {
		q.ballot = q.engine.newToken()
		r.Waiter, r.Token = q.token, q.ballot
	}
	q.recheck = false
	q.lastAsk = r
	q.engine.work.Add()
	return r
}

// put puts a question. An answer with fencing numbers, or by a record, is that of
// an enqueue.
func (q *queue) send(r store.Request, enqueue bool) {
	if enqueue || r.Fences > 0 || r.Attempt != nil {
		q.engine.store.Enqueue(r, q.answerDone)
	} else {
		q.engine.store.Take(r, q.answerDone)
	}
}

// putWhenReady waits with the question until the server knows that this process
// listens, so that the line does not pass it over. But it does not wait for
// long, and once only: the waiter looks again by itself.
func (q *queue) sendWhenListening(r store.Request) {
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
			q.recheck = false // what was missed until now will be seen at once
		}
		q.send(r, true)
	})
}

// heard takes in the store's answer to a question, and goes on.
func (q *queue) onAnswer(answer store.Answer, err error) {
	defer q.engine.work.Done()
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.ballot = ""
	switch r := q.lastAsk; {
	case err == nil && answer.Verdict != store.Undecided:
		q.onVerdict(r, answer)
	case err == nil && q.isOrphan(answer.Holder):
		q.releaseOrphan(r, answer.Holder)
	case err == nil && answer.Unnamed && q.nowaiters > 0:
		q.ask() // again, and with a look: who may not wait is refused only by another's key
	case q.applyAnswer(r, answer, err):
	case err == nil && answer.Split:
		q.pauseAlways(q.pauses.afterSplit())
	case err == nil && !r.Join:
		q.ask() // refused, and not in line yet
	default:
		q.pause(q.pauses.after(answer, err, r.Join && !q.isListening()))
	}
}

// sweep releases an orphan that was found in the key, and asks again. Nobody
// holds the key but a dead token of ours, whose release was lost: that is not
// contention. Another send of a take may win now, so from here on the key's life
// has to be raised.
func (q *queue) releaseOrphan(r store.Request, orphan string) {
	r.Waiter = "" // who stays in line
	q.releasedOrphan = orphan
	q.enqueue = true
	q.engine.work.Add()
	r.Token, r.Attempt = orphan, q.engine.discards.attemptOf(keyToken{q.key, orphan})
	q.engine.store.Release(r, func(store.Released, error) {
		defer q.engine.work.Done()
		q.shard.mu.Lock()
		defer q.shard.mu.Unlock()
		q.ask()
	})
}

// answered takes in the store's answer, and reports whether the line need not
// ask again.
func (q *queue) applyAnswer(r store.Request, answer store.Answer, err error) (settled bool) {
	switch {
	case err != nil:
		q.noteFault(faultOf(err))
	case answer.Split && q.pauses.splits < maxSplits:
		q.lastFault = nil // nobody holds it, so nobody is refused yet
	case !answer.Granted:
		q.lastFault, q.running = nil, nil
		if answer.Running {
			q.setRunning(r.Attempt)
		}
		q.noteContention()
	default:
		lease := newLease(q, r, answer.Since)
		lease.number = answer.Number
		if !lease.valid(lease.begun) {
			q.discardLateGrant(r)
			return q.releasingToken
		}
		lease.fences = newFences(answer.Fence, answer.Fences)
		lease.noteStoreQueue(answer.Line, answer.Since)
		q.lastFault, q.joined = nil, false
		q.lease = lease
		if q.handed {
			q.grantOrRelease(Handed, lease.begun)
		} else {
			q.grantOrRelease(Free, lease.begun)
		}
		return true
	}
	return false
}

// refused notes that another holds the key: who may not wait is busy now, and
// the first of the others hears that it waits. The last one leaves if there is
// no room for both.
func (q *queue) noteContention() {
	q.contended, q.enqueue = true, true
	q.refuseNowaiters(&Refusal{Reason: Busy})
	w := q.first
	if w == nil || w.queued {
		return
	}
	if q.queued > 0 && q.queued >= q.engine.limits.perKey {
		q.refuse(q.last, &Refusal{Reason: QueueFull})
	}
	if refusal := q.markQueued(w); refusal != nil {
		q.refuse(w, refusal)
		return
	}
	if w.updates != nil {
		w.updates <- struct{}{} // there is room for one
	}
}

// faulted notes that the store did not answer. Who may not wait is told; the
// others go on under the same token, unless the fault will not pass.
func (q *queue) noteFault(fault *store.Fault) {
	q.lastFault = fault
	if fault.Unknown {
		q.enqueue, q.joined = true, true
	}
	refusal := &Refusal{Reason: Unavailable, Fault: fault}
	if fault.Passing {
		q.refuseNowaiters(refusal)
	} else {
		q.refuseAll(refusal)
	}
}

// tooSlow gives a grant back whose validity was over when it came. Its token is
// dead; the next question brings a fresh one, as that of a ballot does anyhow.
func (q *queue) discardLateGrant(r store.Request) {
	q.noteFault(&store.Fault{Passing: true, Err: errLateGrant})
	if r.Attempt != nil {
		q.releaseThenAsk(r)
	} else {
		q.engine.discardAsync(keyToken{r.Key, r.Token}, nil, time.Now().Add(r.TTL))
	}
	q.enqueue, q.handed = true, false
	if r.Waiter == "" {
		q.token, q.joined = q.engine.newToken(), false
	}
}

// isOrphan reports whether the value found in the key is a dead token of this
// process that was not swept yet.
func (q *queue) isOrphan(holder string) bool {
	return holder != q.releasedOrphan && q.engine.isDead(q, holder)
}

// faultOf returns the error of a transition as the fault that it is.
func faultOf(err error) *store.Fault {
	var fault *store.Fault
	if errors.As(err, &fault) {
		return fault
	}
	return &store.Fault{Unknown: true, Err: err}
}

package engine

import (
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// errTooSlow is the fault of a grant whose validity was over when it came.
var errTooSlow = errors.New("the answer came too late to be of use")

// ask puts a question to the store for the first of the line. If nobody waits,
// the episode ends. The line is asking, and no other question is under way.
//
// It goes on with heard, and from there to the grant, or back here: at once, or
// after a pause. Once the line stands in the store's line, it looks again when a
// hint tells it to, and when its patience is over.
func (l *line) ask() {
	if l.first == nil {
		l.rest()
		return
	}
	if l.estranged() {
		l.renounce()
	}
	if l.undoing {
		return
	}
	q := l.question()
	if q.Join {
		l.listen()
		l.joined = true
		if !l.hears() && !l.deaf {
			l.putWhenReady(q)
			return
		}
	}
	l.put(q, l.enqueue)
}

// question returns the question for the first of the line. It counts as work.
func (l *line) question() store.Request {
	r := l.first.hold.request
	q := l.request(l.token, r)
	q.Join = l.enqueue && l.callers > l.tries
	q.Look = l.tries > 0 // is it another that holds the key, or an orphan?
	if r.Fencing {
		q.Fences = fencesFor(l.callers)
	}
	q.Attempt = r.Attempt
	if l.engine.ballots {
		l.ballot = l.engine.newToken()
		q.Waiter, q.Token = l.token, l.ballot
	}
	l.again = false
	l.asked = q
	l.engine.work.Add()
	return q
}

// put puts a question. An answer with fencing numbers, or by a record, is that of
// an enqueue.
func (l *line) put(q store.Request, enqueue bool) {
	if enqueue || q.Fences > 0 || q.Attempt != nil {
		l.engine.store.Enqueue(q, l.hear)
	} else {
		l.engine.store.Take(q, l.hear)
	}
}

// putWhenReady waits with the question until the server knows that this process
// listens, so that the line does not pass it over. But it does not wait for
// long, and once only: the waiter looks again by itself.
func (l *line) putWhenReady(q store.Request) {
	ready := l.ready
	l.engine.spawn(func() {
		timer := time.NewTimer(q.Bound)
		defer timer.Stop()
		select {
		case <-ready:
		case <-timer.C:
		}
		l.shard.mu.Lock()
		defer l.shard.mu.Unlock()
		l.deaf = !l.hears()
		if !l.deaf {
			l.again = false // what was missed until now will be seen at once
		}
		l.put(q, true)
	})
}

// heard takes in the store's answer to a question, and goes on.
func (l *line) heard(answer store.Answer, err error) {
	defer l.engine.work.Done()
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	l.ballot = ""
	switch q := l.asked; {
	case err == nil && answer.Verdict != store.Undecided:
		l.decided(q, answer)
	case err == nil && l.isOrphan(answer.Holder):
		l.sweep(q, answer.Holder)
	case err == nil && answer.Unnamed && l.tries > 0:
		l.ask() // again, and with a look: who may not wait is refused only by another's key
	case l.answered(q, answer, err):
	case err == nil && answer.Split:
		l.sleep(l.patience.afterSplit())
	case err == nil && !q.Join:
		l.ask() // refused, and not in line yet
	default:
		l.pause(l.patience.after(answer, err, q.Join && !l.hears()))
	}
}

// sweep releases an orphan that was found in the key, and asks again. Nobody
// holds the key but a dead token of ours, whose release was lost: that is not
// contention. Another send of a take may win now, so from here on the key's life
// has to be raised.
func (l *line) sweep(q store.Request, orphan string) {
	q.Waiter = "" // who stays in line
	l.swept = orphan
	l.enqueue = true
	l.engine.work.Add()
	r := q
	r.Token, r.Attempt = orphan, l.engine.discards.attemptOf(place{l.key, orphan})
	l.engine.store.Release(r, func(store.Released, error) {
		defer l.engine.work.Done()
		l.shard.mu.Lock()
		defer l.shard.mu.Unlock()
		l.ask()
	})
}

// answered takes in the store's answer, and reports whether the line need not
// ask again.
func (l *line) answered(q store.Request, answer store.Answer, err error) (settled bool) {
	switch {
	case err != nil:
		l.faulted(faultOf(err))
	case answer.Split && l.patience.splits < mostSplits:
		l.doubt = nil // nobody holds it, so nobody is refused yet
	case !answer.Granted:
		l.doubt, l.running = nil, nil
		if answer.Running {
			l.runs(q.Attempt)
		}
		l.refused()
	default:
		lease := newLease(l, q, answer.Since)
		lease.number = answer.Number
		if !lease.valid(lease.begun) {
			l.tooSlow(q)
			return l.undoing
		}
		lease.fences = newFences(answer.Fence, answer.Fences)
		lease.lineSeen(answer.Line, answer.Since)
		l.doubt, l.joined = nil, false
		l.lease = lease
		if l.promised {
			l.next(Handed, lease.begun)
		} else {
			l.next(Free, lease.begun)
		}
		return true
	}
	return false
}

// refused notes that another holds the key: who may not wait is busy now, and
// the first of the others hears that it waits. The last one leaves if there is
// no room for both.
func (l *line) refused() {
	l.contended, l.enqueue = true, true
	l.refuseTries(&Refusal{Reason: Busy})
	w := l.first
	if w == nil || w.queued {
		return
	}
	if l.queued > 0 && l.queued >= l.engine.limits.perKey {
		l.refuse(l.last, &Refusal{Reason: LineFull})
	}
	if refusal := l.queue(w); refusal != nil {
		l.refuse(w, refusal)
		return
	}
	if w.news != nil {
		w.news <- struct{}{} // there is room for one
	}
}

// faulted notes that the store did not answer. Who may not wait is told; the
// others go on under the same token, unless the fault will not pass.
func (l *line) faulted(fault *store.Fault) {
	l.doubt = fault
	if fault.Unknown {
		l.enqueue, l.joined = true, true
	}
	refusal := &Refusal{Reason: Unavailable, Fault: fault}
	if fault.Passing {
		l.refuseTries(refusal)
	} else {
		l.refuseAll(refusal)
	}
}

// tooSlow gives a grant back whose validity was over when it came. Its token is
// dead; the next question brings a fresh one, as that of a ballot does anyhow.
func (l *line) tooSlow(r store.Request) {
	l.faulted(&store.Fault{Passing: true, Err: errTooSlow})
	if r.Attempt != nil {
		l.undo(r)
	} else {
		l.engine.spawnDiscard(place{r.Key, r.Token}, nil, time.Now().Add(r.TTL))
	}
	l.enqueue, l.promised = true, false
	if r.Waiter == "" {
		l.token, l.joined = l.engine.newToken(), false
	}
}

// isOrphan reports whether the value found in the key is a dead token of this
// process that was not swept yet.
func (l *line) isOrphan(holder string) bool {
	return holder != l.swept && l.engine.isDead(l, holder)
}

// faultOf returns the error of a transition as the fault that it is.
func faultOf(err error) *store.Fault {
	var fault *store.Fault
	if errors.As(err, &fault) {
		return fault
	}
	return &store.Fault{Unknown: true, Err: err}
}

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// errTooSlow is the fault of a grant whose validity was over when it came.
var errTooSlow = errors.New("the answer came too late to be of use")

// A question is what a line is about to ask the store.
type question struct {
	store.Request
	// enqueue is true where a take would not do.
	enqueue bool
	// ready is closed once the server knows that this process listens; nil
	// where nobody is to be put in line.
	ready <-chan struct{}
}

// spawnAsk starts the line's asking goroutine, for its first waiter. There is
// one for each line in the state asking.
func (l *line) spawnAsk(pause time.Duration) {
	ctx := context.Background()
	if l.first != nil {
		ctx = l.first.hold.parent
	}
	l.engine.spawn(func() { l.engine.ask(ctx, l, pause) })
}

// ask asks the store for the line's key until it is granted, or nobody waits
// any more. Once it stands in the store's line it looks again when a hint tells
// it to, and when its patience is over.
func (e *Engine) ask(ctx context.Context, l *line, pause time.Duration) {
	var patience patience
	var swept string
	var deaf bool
	for {
		if pause > 0 {
			l.pause(pause)
		}
		q, wanted := l.question()
		if !wanted {
			return
		}
		if q.Join {
			deaf = !l.awaitReady(q, !deaf)
		}
		answer, err := e.put(ctx, q)
		if err == nil && swept != answer.Holder && l.isOrphan(answer.Holder) {
			// Nobody holds the key but a dead token of ours, whose release was
			// lost: that is not contention. Another send of the take may win
			// now, so from here on the key's life has to be raised.
			swept = answer.Holder
			l.sweep(ctx, swept, q.Request)
			pause = 0
			continue
		}
		if l.answered(q, answer, err) {
			return
		}
		pause = patience.after(answer, err, deaf)
		if err == nil && !q.Join {
			pause = 0 // refused, and not in line yet
		}
	}
}

// question returns what to ask for the first of the line. If nobody waits, the
// episode ends.
func (l *line) question() (q question, wanted bool) {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	if l.first == nil {
		l.rest()
		return q, false
	}
	r := l.first.hold.request
	q.Request = l.request(l.token, r)
	q.Join = l.enqueue && l.callers > l.tries
	q.enqueue = l.enqueue || r.Fencing
	if r.Fencing {
		q.Fences = fenceBlock
	}
	if q.Join {
		l.listen()
		q.ready = l.ready
		l.joined = true
	}
	l.again = false
	return q, true
}

// awaitReady reports whether the server knows that this process listens, so
// that the line does not pass it over. It may wait for that, but not for long:
// the waiter looks again by itself.
func (l *line) awaitReady(q question, wait bool) bool {
	select {
	case <-q.ready:
		return true
	default:
	}
	if !wait {
		return false
	}
	timer := time.NewTimer(q.Bound)
	defer timer.Stop()
	select {
	case <-q.ready:
		l.shard.mu.Lock()
		l.again = false // what was missed until now will be seen at once
		l.shard.mu.Unlock()
		return true
	case <-timer.C:
		return false
	}
}

// put puts the question to the store.
func (e *Engine) put(ctx context.Context, q question) (store.Answer, error) {
	if q.enqueue {
		return e.store.Enqueue(ctx, q.Request)
	}
	return e.store.Take(ctx, q.Request)
}

// sweep releases an orphan that was found in the key. From then on the line
// enqueues.
func (l *line) sweep(ctx context.Context, orphan string, r store.Request) {
	r.Token = orphan
	_, _ = l.engine.store.Release(ctx, r)
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	l.enqueue = true
}

// answered takes in the store's answer, and reports whether the line need not
// ask again.
func (l *line) answered(q question, answer store.Answer, err error) (settled bool) {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	switch {
	case err != nil:
		l.faulted(faultOf(err))
	case !answer.Granted:
		l.doubt = nil
		l.refused()
	default:
		lease := newLease(l, q.Request, answer.Since)
		if !lease.valid(time.Now()) {
			l.tooSlow(q.Request)
			break
		}
		lease.fences = newFences(answer.Fence)
		lease.lineSeen(answer.Line, answer.Since)
		l.doubt, l.joined = nil, false
		l.lease = lease
		if l.promised {
			l.next(Handed)
		} else {
			l.next(Free)
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
	w.news <- struct{}{} // there is room for one
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
// dead; the next question brings a fresh one.
func (l *line) tooSlow(r store.Request) {
	l.faulted(&store.Fault{Passing: true, Err: errTooSlow})
	l.engine.spawnDiscard(r.Key, r.Token, time.Now().Add(r.TTL))
	l.token, l.promised = l.engine.newToken(), false
	l.enqueue, l.joined = true, false
}

// isOrphan reports whether the value found in the key is a token of this
// process that is not meant to be there.
func (l *line) isOrphan(holder string) bool {
	if !l.engine.isOwn(holder) {
		return false
	}
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	return !l.owns(holder)
}

// faultOf returns the error of a transition as the fault that it is.
func faultOf(err error) *store.Fault {
	var fault *store.Fault
	if errors.As(err, &fault) {
		return fault
	}
	return &store.Fault{Unknown: true, Err: err}
}

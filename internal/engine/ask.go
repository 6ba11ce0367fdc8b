package engine

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// errTooSlow is the fault of a grant whose validity was over when it came.
var errTooSlow = errors.New("the answer came too late to be of use")

// ask asks the store for the line's key until it is granted, or nobody waits
// any more. There is one such goroutine for each line in the state asking.
//
// Between processes this is polling, with growing pauses. A store that can
// tell when a key comes free wakes the line through its hints.
func (e *Engine) ask(ctx context.Context, l *line) {
	transition := e.store.Take
	swept := false
	for tries := 0; ; tries++ {
		r, wanted := l.question()
		if !wanted {
			return
		}
		answer, err := transition(ctx, r)
		if err == nil && !swept && l.isOrphan(answer.Holder) {
			// Nobody holds the key but a dead token of ours, whose release was
			// lost: that is not contention. Another send of the take may win
			// now, so from here on the key's life has to be raised.
			swept = true
			_, _ = e.store.Release(ctx, store.Request{Key: r.Key, Token: answer.Holder, Bound: r.Bound})
			transition = e.store.Ask
			continue
		}
		rest, settled := l.answered(r, answer, err)
		if settled {
			return
		}
		l.pause(pauseOf(tries, rest))
		transition = e.store.Ask
	}
}

// question returns what to ask for the first of the line. If nobody waits, the
// episode ends.
func (l *line) question() (r store.Request, wanted bool) {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	if l.first == nil {
		l.rest()
		return r, false
	}
	return l.request(l.token, l.first.hold.request), true
}

// answered takes in the store's answer. It returns how long the holder's key
// lives on, if known, and whether the line need not ask again.
func (l *line) answered(r store.Request, answer store.Answer, err error) (rest time.Duration, settled bool) {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	switch {
	case err != nil:
		l.faulted(r, faultOf(err))
	case !answer.Granted:
		l.doubt = nil
		l.refused()
		rest = answer.Remaining
	default:
		lease := newLease(l, r, answer.Since)
		if !lease.valid(time.Now()) {
			l.faulted(r, &store.Fault{Unknown: true, Passing: true, Err: errTooSlow})
			break
		}
		l.doubt = nil
		l.lease = lease
		l.next(Free)
		return 0, true
	}
	return rest, false
}

// refused notes that another holds the key: who may not wait is busy now, and
// the first of the others hears that it waits.
func (l *line) refused() {
	l.contended = true
	l.refuseTries(&Refusal{Reason: Busy})
	if w := l.first; w != nil && !w.queued {
		w.queued = true
		w.news <- struct{}{} // there is room for one
	}
}

// faulted notes that the store did not answer. Who may not wait is told; the
// others go on, unless the fault will not pass. A token whose fate is unknown
// is dead: the next question brings a fresh one.
func (l *line) faulted(r store.Request, fault *store.Fault) {
	l.doubt = fault
	refusal := &Refusal{Reason: Unavailable, Fault: fault}
	if fault.Passing {
		l.refuseTries(refusal)
	} else {
		l.refuseAll(refusal)
	}
	if fault.Unknown {
		l.token = l.engine.newToken()
		over := time.Now().Add(r.TTL)
		l.engine.spawn(func() { l.engine.discard(r.Key, r.Token, over) })
	}
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

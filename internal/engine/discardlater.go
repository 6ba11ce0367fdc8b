package engine

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// laterPauses are the pauses before a token that was sent twice is looked after: after the last one,
// the network has delivered or lost the send that has no reply.
func laterPauses() [3]time.Duration {
	return [...]time.Duration{200 * time.Millisecond, 800 * time.Millisecond, 3 * time.Second}
}

// maxLater is how many tokens are looked after at a time. Without it, a key that a delayed send has
// taken for a dead token stays taken until a waiter of this process finds the token, another process
// names it in a hint, or the TTL ends.
const maxLater = 1024

// discardLater discards the token of a request several times in the next seconds, if it is dead then.
// A send of the request may still be applied after the token was released, and its reply is lost. An
// attempt needs no such care: its record refuses a begin that comes after its end. Neither does a
// ballot, which is withdrawn.
func (e *Engine) discardLater(r store.EnqueueRequest) {
	switch {
	case r.Attempt != nil, e.ballots:
	case e.later.Add(1) > maxLater:
		e.later.Add(-1)
	default:
		e.lookAfter(keyToken{r.Key, r.Token}, 0)
	}
}

// lookAfter discards a token after the pauses from this one on. Close does not wait for a pause, but
// for a discard that has begun.
func (e *Engine) lookAfter(p keyToken, pause int) {
	pauses := laterPauses()
	if pause == len(pauses) {
		e.later.Add(-1)
		return
	}
	time.AfterFunc(pauses[pause], func() {
		if !e.addWork() {
			e.later.Add(-1)
			return
		}
		defer e.work.Done()
		if e.mayDiscard(p) {
			e.discardAsync(p, nil, time.Time{})
		}
		e.lookAfter(p, pause+1)
	})
}

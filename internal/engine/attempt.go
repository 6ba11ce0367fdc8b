package engine

import (
	"bytes"
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// An Attempt is the idempotent request of a caller.
type Attempt = store.Attempt

// MaxReference is store.MaxReference, for the owner of the engine.
const MaxReference = store.MaxReference

// IsReference is store.IsReference, for the owner of the engine.
func IsReference(text string) bool { return store.IsReference(text) }

// sameAttempt reports whether a grant to one of two callers of a key can serve the
// other. The record has the reference of the caller that has asked.
func sameAttempt(a, b *Attempt) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Rerun == b.Rerun && a.Keep == b.Keep && a.Reference == b.Reference && bytes.Equal(a.Fingerprint, b.Fingerprint)
}

// isMismatch reports whether two attempts with the same key are different requests.
func isMismatch(a, b *Attempt) bool {
	return a != nil && b != nil && !bytes.Equal(a.Fingerprint, b.Fingerprint)
}

// setRunning notes which attempt runs, and its reference, and refuses the callers that brought
// the same key with another request. The attempt of another process is known by that of a copy.
func (q *queue) setRunning(a *Attempt, first string) {
	q.running, q.runningFirst = a, first
	if a == nil {
		return
	}
	q.refuseIf(func(w *waiter) *Refusal {
		if isMismatch(a, w.hold.request.Attempt) {
			return &Refusal{Reason: Mismatch, First: first}
		}
		return nil
	})
}

// firstRunning returns the reference of the attempt that is known to run, also after the loss of its
// lease in this process; "" is none.
func (q *queue) firstRunning() string {
	if q.running != nil {
		return q.runningFirst
	}
	for _, lost := range q.lostTokens {
		if lost != nil {
			return lost.Reference
		}
	}
	return ""
}

// referenceOf returns the reference of an attempt; "" also for nil.
func referenceOf(a *Attempt) string {
	if a == nil {
		return ""
	}
	return a.Reference
}

// errAborting is the fault of a caller whose earlier attempt looks like one that died, until the store
// accepts that it is aborted.
var errAborting = &store.Fault{Temporary: true, Err: errors.New("an earlier attempt of the request is being aborted")}

// onVerdict handles the reply that an attempt must not run. It refuses the callers that
// the verdict decides about, and asks for the others. The token is dead.
func (q *queue) onVerdict(r store.EnqueueRequest, answer store.Answer) {
	q.lastFault, q.joined = nil, false
	if answer.Verdict == store.Died && q.engine.discards.isAborting(q.key) {
		q.noteFault(errAborting)
		q.pause(q.pauses.after(answer, errAborting, false))
		return
	}
	if answer.Unreported != "" {
		event := q.unknownOutcome()
		event.Origin = answer.First
		q.engine.reportUnknown(event, answer.Unreported)
	}
	if answer.Verdict == store.Done || answer.Verdict == store.Unreplayable {
		q.noteRival()
	}
	q.settleByVerdict(r.Attempt, answer.Verdict, answer.Record, answer.First)
	q.endEpisode(true)
}

// unknownOutcome returns the event for an attempt of another process: that of the first
// caller who asks for the key, if the caller has not left.
func (q *queue) unknownOutcome() Event {
	if q.first == nil {
		return Event{Kind: OutcomeUnknown, Key: q.key, Attempt: true}
	}
	return Event{Kind: OutcomeUnknown}.of(q.first.hold)
}

// settleByVerdict refuses callers by the verdict on one attempt, or by the end of one.
// They share its record, and need no command of their own. first is the reference in the record.
func (q *queue) settleByVerdict(a *Attempt, verdict store.Verdict, record []byte, first string) {
	q.refuseIf(func(w *waiter) *Refusal {
		own := w.hold.request.Attempt
		switch {
		case own == nil:
			return nil
		case isMismatch(a, own):
			if verdict == store.Mismatch { // unknown which of the two matches the record
				return nil
			}
			return &Refusal{Reason: Mismatch, First: first}
		case verdict == store.Done:
			return &Refusal{Reason: Done, Record: record, First: first}
		case verdict == store.Unreplayable:
			return &Refusal{Reason: Unreplayable, First: first}
		case verdict == store.Mismatch:
			return &Refusal{Reason: Mismatch, First: first}
		case verdict == store.Died && !own.Rerun:
			return &Refusal{Reason: Died, First: first}
		}
		return nil
	})
}

// isTokenStale reports whether the token was used for another attempt than the first
// waiter's, which needs its own token.
func (q *queue) isTokenStale() bool {
	return q.lastAsk.Token == q.token && !sameAttempt(q.lastAsk.Attempt, q.first.hold.request.Attempt)
}

// rotateToken replaces the token by a fresh one.
func (q *queue) rotateToken() {
	if q.joined {
		q.releaseThenAsk(q.lastAsk)
	}
	q.token, q.joined, q.unsure, q.handed = q.engine.newToken(q.limit), false, false, false
}

// releaseThenAsk releases a token that is given up and aborts its attempt, and then
// asks. The queue asks nothing meanwhile, because a request would find the record of
// that attempt. The entry in the discards keeps a hint that names the token from
// releasing it a second time at the same moment.
func (q *queue) releaseThenAsk(asked store.EnqueueRequest) {
	e := q.engine
	p := keyToken{asked.Key, asked.Token}
	first := e.discards.add(p, asked.Attempt)
	r := store.ReleaseRequest{Target: asked.Target, Claim: asked.Claim, Waiter: asked.Waiter}
	r = EndAbort.applyTo(r, asked.Attempt, nil)
	q.releasingToken = true
	e.work.Add()
	e.store.Release(r, func(_ store.ReleaseResult, err error) {
		defer e.work.Done()
		if first && (err != nil || !e.discards.complete(p)) {
			e.runDiscard(p, time.Now().Add(abortTimeout))
		}
		q.shard.mu.Lock()
		defer q.shard.mu.Unlock()
		q.releasingToken = false
		q.ask()
	})
}

// leaveStoreQueue discards a token that may be in the store's queue or in the key, and
// aborts its attempt.
func (q *queue) leaveStoreQueue() {
	if !q.joined {
		return
	}
	var attempt *Attempt
	if q.lastAsk.Token == q.token {
		attempt = q.lastAsk.Attempt
	}
	q.engine.discardAsync(keyToken{q.key, q.token}, attempt, time.Now().Add(discardTimeout))
}

package engine

import (
	"bytes"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// An Attempt is the idempotent request of a caller.
type Attempt = store.Attempt

// alike reports whether what is granted to one of two callers of a key may be
// granted to the other.
func sameAttempt(a, b *Attempt) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Rerun == b.Rerun && a.Keep == b.Keep && bytes.Equal(a.Fingerprint, b.Fingerprint)
}

// contradict reports whether two requests with the same key are not the same.
func isMismatch(a, b *Attempt) bool {
	return a != nil && b != nil && !bytes.Equal(a.Fingerprint, b.Fingerprint)
}

// runs notes which attempt runs, and refuses those who came with its key and are
// another request.
func (q *queue) setRunning(a *Attempt) {
	q.running = a
	if a == nil {
		return
	}
	q.refuseIf(func(w *waiter) *Refusal {
		if isMismatch(a, w.hold.request.Attempt) {
			return &Refusal{Reason: Mismatch}
		}
		return nil
	})
}

// decided takes in that an attempt is not to run, and goes on for those of whom
// nothing is known by that. The token is dead.
func (q *queue) onVerdict(r store.Request, answer store.Answer) {
	q.lastFault, q.joined = nil, false
	q.settleByVerdict(r.Attempt, answer.Verdict, answer.Record)
	q.endEpisode(true)
}

// settleBy settles the callers by the verdict on one of them, or by the end of one.
// They share its record, and no other command is sent for them.
func (q *queue) settleByVerdict(a *Attempt, verdict store.Verdict, record []byte) {
	q.refuseIf(func(w *waiter) *Refusal {
		own := w.hold.request.Attempt
		switch {
		case own == nil:
			return nil
		case isMismatch(a, own):
			if verdict == store.Mismatch { // with which of the two?
				return nil
			}
			return &Refusal{Reason: Mismatch}
		case verdict == store.Done:
			return &Refusal{Reason: Done, Record: record}
		case verdict == store.Sealed:
			return &Refusal{Reason: Sealed}
		case verdict == store.Mismatch:
			return &Refusal{Reason: Mismatch}
		case verdict == store.Interrupted && !own.Rerun:
			return &Refusal{Reason: Interrupted}
		}
		return nil
	})
}

// estranged reports whether the token was used for an attempt that is not the
// first waiter's. That one needs a token of its own: it is the attempt.
func (q *queue) isTokenStale() bool {
	return q.lastAsk.Token == q.token && !sameAttempt(q.lastAsk.Attempt, q.first.hold.request.Attempt)
}

// renounce gives the token up for a fresh one.
func (q *queue) rotateToken() {
	if q.joined {
		q.releaseThenAsk(q.lastAsk)
	}
	q.token, q.joined, q.handed = q.engine.newToken(), false, false
}

// undo releases a token that is given up, and aborts its attempt. The line asks
// nothing meanwhile: it would meet the record. Then it asks. Who hints at the token
// meanwhile does not have it released beside that.
func (q *queue) releaseThenAsk(r store.Request) {
	e := q.engine
	p := keyToken{r.Key, r.Token}
	first := e.discards.claim(p, r.Attempt)
	q.releasingToken = true
	e.work.Add()
	e.store.Release(r, func(_ store.Released, err error) {
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

// abandon sees to it that a token that may stand in the store's line, or hold the
// key, does not stay there, and that no attempt of it begins.
func (q *queue) leaveStoreQueue() {
	if !q.joined {
		return
	}
	q.joined = false
	var attempt *Attempt
	if q.lastAsk.Token == q.token {
		attempt = q.lastAsk.Attempt
	}
	q.engine.discardAsync(keyToken{q.key, q.token}, attempt, time.Now().Add(discardTimeout))
}

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
func alike(a, b *Attempt) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Rerun == b.Rerun && a.Keep == b.Keep && bytes.Equal(a.Fingerprint, b.Fingerprint)
}

// contradict reports whether two requests with the same key are not the same.
func contradict(a, b *Attempt) bool {
	return a != nil && b != nil && !bytes.Equal(a.Fingerprint, b.Fingerprint)
}

// runs notes which attempt runs, and refuses those who came with its key and are
// another request.
func (l *line) runs(a *Attempt) {
	l.running = a
	if a == nil {
		return
	}
	l.refuseIf(func(w *waiter) *Refusal {
		if contradict(a, w.hold.request.Attempt) {
			return &Refusal{Reason: Mismatch}
		}
		return nil
	})
}

// decided takes in that an attempt is not to run, and goes on for those of whom
// nothing is known by that. The token is dead.
func (l *line) decided(q store.Request, answer store.Answer) {
	l.doubt, l.joined = nil, false
	l.settleBy(q.Attempt, answer.Verdict, answer.Record)
	l.proceed(true)
}

// settleBy settles the callers by the verdict on one of them, or by the end of one.
// They share its record, and no other command is sent for them.
func (l *line) settleBy(a *Attempt, verdict store.Verdict, record []byte) {
	l.refuseIf(func(w *waiter) *Refusal {
		own := w.hold.request.Attempt
		switch {
		case own == nil:
			return nil
		case contradict(a, own):
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
func (l *line) estranged() bool {
	return l.asked.Token == l.token && !alike(l.asked.Attempt, l.first.hold.request.Attempt)
}

// renounce gives the token up for a fresh one.
func (l *line) renounce() {
	if l.joined {
		l.undo(l.asked)
	}
	l.token, l.joined, l.promised = l.engine.newToken(), false, false
}

// undo releases a token that is given up, and aborts its attempt. The line asks
// nothing meanwhile: it would meet the record. Then it asks. Who hints at the token
// meanwhile does not have it released beside that.
func (l *line) undo(r store.Request) {
	e := l.engine
	p := place{r.Key, r.Token}
	first := e.discards.begin(p, r.Attempt)
	l.undoing = true
	e.work.Add()
	e.store.Release(r, func(_ store.Released, err error) {
		defer e.work.Done()
		if first && (err != nil || !e.discards.end(p)) {
			e.spawnDiscarding(p, time.Now().Add(abortPatience))
		}
		l.shard.mu.Lock()
		defer l.shard.mu.Unlock()
		l.undoing = false
		l.ask()
	})
}

// abandon sees to it that a token that may stand in the store's line, or hold the
// key, does not stay there, and that no attempt of it begins.
func (l *line) abandon() {
	if !l.joined {
		return
	}
	l.joined = false
	var attempt *Attempt
	if l.asked.Token == l.token {
		attempt = l.asked.Attempt
	}
	l.engine.spawnDiscard(place{l.key, l.token}, attempt, time.Now().Add(discardPatience))
}

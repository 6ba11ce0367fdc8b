package engine

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// commitTime is how long an attempt's end is tried that must not be lost: the
// handler has run, and its answer is about to be sent.
const commitTimeout = 2 * time.Second

// An Ending says how an attempt ends, and with it its hold.
type Ending int

// The endings.
const (
	Abort     Ending = iota // as if it had not begun
	Commit                  // it is done, with an answer
	Seal                    // it is done, and its answer is not kept
	Interrupt               // nobody knows, as after a crash
)

// final reports whether the attempt is done.
func (e Ending) isFinal() bool { return e == Commit || e == Seal }

// of makes a release of the token one that ends the attempt like this. A plain
// release leaves its record as that of an attempt that runs no more.
func (e Ending) applyTo(r store.Request, a *Attempt, record []byte) store.Request {
	switch e {
	case Abort:
		r.Attempt, r.Ending = a, store.Abort
	case Commit:
		r.Attempt, r.Ending, r.Record = a, store.Commit, record
	case Seal:
		r.Attempt, r.Ending = a, store.Seal
	case Interrupt:
	}
	return r
}

// verdictOf returns that on those who come after an attempt that was done.
func verdictOf(e store.Ending) store.Verdict {
	if e == store.Seal {
		return store.Sealed
	}
	return store.Done
}

// aborted returns the attempt that the release under way aborts.
func (q *queue) abortedAttempt() *Attempt {
	if q.lastRelease.Ending == store.Abort {
		return q.lastRelease.Attempt
	}
	return nil
}

// End ends the hold of an attempt, as Release ends that of a mere lock. A final
// ending is sent again for commitTime, also where the lease is lost. The loss
// is Taken if another attempt had begun, so that the store refused a final ending; it
// says nothing of the lease. Later calls do nothing and return the same.
//
// Nobody may change the record's bytes any more.
func (h *Hold) End(ctx context.Context, ending Ending, record []byte) (Loss, error) {
	_, err := h.release(ctx, ending, record)
	if err == nil && h.isRefused() {
		return Taken, nil
	}
	return NotLost, err
}

// isRefused reports whether a final ending came too late.
func (h *Hold) isRefused() bool {
	h.queue.shard.mu.Lock()
	defer h.queue.shard.mu.Unlock()
	return h.ending.isFinal() && h.stored == store.NotStored
}

// Number counts the attempts at a request, this one included; 0 for a mere lock.
func (h *Hold) Number() int { return h.number }

// endLate ends an attempt whose lease was lost. It is done if no other has
// begun, and the line's callers are told. One that is aborted did not take place,
// and those who come next must not meet what it has left.
func (h *Hold) releaseLate() {
	q := h.queue
	r := store.Request{Key: h.request.Key, Token: h.token, TTL: h.request.TTL}
	r.Bound, r.Claim = h.engine.boundOf(r.TTL), h.engine.claimOf(r.TTL)
	r = h.ending.applyTo(r, h.request.Attempt, h.record)
	var over time.Time
	if h.ending.isFinal() {
		over = time.Now().Add(commitTimeout)
	}
	h.engine.work.Add()
	h.engine.releaseUntil(r, over, func(released store.Released, err error) {
		defer h.engine.work.Done()
		var after callbacks
		q.shard.mu.Lock()
		switch {
		case err != nil && h.ending == Abort:
			h.engine.discardAsync(keyToken{r.Key, r.Token}, r.Attempt, h.until)
		case err == nil && h.ending.isFinal() && released.Stored != store.NotStored:
			q.settleByVerdict(r.Attempt, verdictOf(r.Ending), r.Record)
			q.wake()
		}
		q.forgetLost(h.token)
		h.stored = released.Stored
		h.completeRelease(err, &after)
		q.shard.mu.Unlock()
		after.runAsync(h.engine)
	})
}

// observeEnding tells the owner what became of an attempt's final ending.
func (h *Hold) observeEnding(err error, after *callbacks) {
	if !h.ending.isFinal() {
		return
	}
	event := Event{Kind: Committed, Key: h.request.Key, Held: time.Since(h.since), Err: err}
	if err == nil && h.stored == store.NotStored {
		event.Loss = Taken
	}
	restored := err == nil && h.stored == store.Restored
	after.add(func() {
		if restored {
			h.engine.observe(Event{Kind: Restored, Key: event.Key, Held: event.Held})
		}
		h.engine.observe(event)
	})
}

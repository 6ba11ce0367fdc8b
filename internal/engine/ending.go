package engine

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// commitTimeout is how long a Commit or Done is retried. It must not be lost, because
// the handler has run and its answer is about to be sent.
const commitTimeout = 2 * time.Second

// An Ending says how an attempt ends, and with it its hold.
type Ending int8

// The endings.
const (
	EndAbort   Ending = iota // as if the attempt had not begun
	EndCommit                // the attempt is done, with an answer
	EndDone                  // the attempt is done, and its answer is not kept
	EndUnknown               // the outcome is unknown, as after a crash
)

// isFinal reports whether the attempt is done.
func (e Ending) isFinal() bool { return e == EndCommit || e == EndDone }

// applyTo returns the release of the token with this ending of its attempt. A release
// without an attempt leaves a record that says that the attempt does not run any more.
func (e Ending) applyTo(r store.ReleaseRequest, a *Attempt, record []byte) store.ReleaseRequest {
	if a == nil {
		return r
	}
	switch e {
	case EndAbort:
		r.Attempt, r.Ending = a, store.EndAbort
	case EndCommit:
		r.Attempt, r.Ending, r.Record = a, store.EndCommit, record
	case EndDone:
		r.Attempt, r.Ending = a, store.EndDone
	case EndUnknown:
	}
	return r
}

// verdictOf returns the verdict on later requests after an attempt that was done.
func verdictOf(e store.Ending) store.Verdict {
	if e == store.EndDone {
		return store.Unreplayable
	}
	return store.Done
}

// abortedAttempt returns the attempt that the release in flight aborts; nil if there is
// none.
func (q *queue) abortedAttempt() *Attempt {
	if q.lastRelease.Ending == store.EndAbort {
		return q.lastRelease.Attempt
	}
	return nil
}

// End ends the hold of an attempt, as Release ends the hold of a plain lock. EndCommit and EndDone
// are retried for commitTimeout, also after the loss of the lease. The loss is Taken if
// another attempt has begun, so that the store refused the Commit or Done. The loss
// says nothing about the lease. Later calls do nothing and return the same.
//
// The caller must not change the record's bytes any more.
func (h *Hold) End(ctx context.Context, ending Ending, record []byte) (Loss, error) {
	_, err := h.release(ctx, ending, record)
	if err == nil && h.isRefused() {
		return Taken, nil
	}
	return NotLost, err
}

// SetCause sets why the owner ends the attempt as unknown, for the event OutcomeUnknown. It does
// nothing after the end of the attempt.
func (h *Hold) SetCause(cause error) { h.say(func(s *said) { s.cause = cause }) }

// SetOutcomeName is SetCause for the name of an unknown outcome, and of what ends it, if the request has
// no name.
func (h *Hold) SetOutcomeName(name string) { h.say(func(s *said) { s.name = name }) }

// A said is what the owner says about an attempt that ends as unknown.
type said struct {
	cause    error
	name     string    // if the request has none
	unsealed *unsealed // nil: the answer can be sent
}

// say changes what the owner says, unless the attempt has ended.
func (h *Hold) say(change func(*said)) {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	if h.done != nil {
		return
	}
	if h.said == nil {
		h.said = &said{}
	}
	change(h.said)
}

// outcomeName returns the name of an unknown outcome, for a caller with the mutex of the shard.
func (h *Hold) outcomeName() string {
	if h.request.Name == "" && h.said != nil {
		return h.said.name
	}
	return h.request.Name
}

// isRefused reports whether a Commit or Done came after another attempt had begun.
func (h *Hold) isRefused() bool {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	return h.ending.isFinal() && h.stored == store.NotStored
}

// Fingerprint returns that of the attempt. The caller must not change its bytes.
func (h *Hold) Fingerprint() []byte { return h.request.Attempt.Fingerprint }

// Number returns the number of this attempt at the request, from 1; 0 for a mere lock.
func (h *Hold) Number() int { return h.number }

// releaseLate ends an attempt after the loss of its lease. The attempt is done if no
// other has begun, and then the callers in the queue get its answer. After an abort,
// later attempts must not find its record.
func (h *Hold) releaseLate() {
	q := h.lease.queue
	r := store.ReleaseRequest{Claim: h.engine.claimOf(h.request.TTL)}
	r.Target = store.Target{Key: h.request.Key, Token: h.token, TTL: h.request.TTL, Bound: h.engine.boundOf(h.request.TTL)}
	r = h.ending.applyTo(r, h.request.Attempt, h.record)
	var over time.Time
	if h.ending.isFinal() {
		over = time.Now().Add(commitTimeout)
	}
	h.engine.work.Add()
	done := func(released store.ReleaseResult, err error) {
		defer h.engine.work.Done()
		var after callbacks
		q.shard.mu.Lock()
		if h.ending.isFinal() {
			q.committing--
		}
		switch {
		case err != nil && h.ending == EndAbort:
			h.engine.discardAsync(keyToken{r.Key, r.Token}, r.Attempt, h.until)
		case h.ending == EndAbort:
			h.engine.discards.noteAborted(keyToken{r.Key, r.Token}, r.Attempt)
		case err != nil:
			q.keepOpen(h, r, err)
		case err == nil && h.ending.isFinal() && released.Record != store.NotStored:
			q.answered = true
			q.settleByVerdict(r.Attempt, verdictOf(r.Ending), r.Record, r.Attempt.Reference)
			q.sendOpenNow()
		}
		if h.ending.isFinal() {
			q.wake() // it asks again, or ends its episode if no caller needs that any more
		}
		q.forgetLost(h.token)
		h.stored = released.Record
		h.completeRelease(err, time.Now(), &after)
		q.shard.mu.Unlock()
		after.run(h.engine)
	}
	if u := h.notSealed(); u != nil {
		done(store.ReleaseResult{}, u.fault)
		return
	}
	q.releaseWhenClear(r, over, done)
}

// releaseWhenClear is releaseUntil, but a commit is not sent while an attempt of the queue begins or
// ends, or one of the key that has not run is being aborted: the store would refuse the commit
// because of it. The queue begins nothing new meanwhile.
func (q *queue) releaseWhenClear(r store.ReleaseRequest, over time.Time, done func(store.ReleaseResult, error)) {
	e := q.engine
	q.shard.mu.Lock()
	isClear := !q.hasAttemptUnderWay() && !e.discards.isAborting(r.Key)
	q.shard.mu.Unlock()
	if isClear || !time.Now().Before(over) {
		e.releaseUntil(r, over, done)
		return
	}
	time.AfterFunc(minPause, func() { q.releaseWhenClear(r, over, done) })
}

// hasAttemptUnderWay reports whether a request for an attempt is under way, or its release.
func (q *queue) hasAttemptUnderWay() bool {
	asks := q.state == asking && !q.asksLater && q.timer == nil && q.lastAsk.Attempt != nil
	return asks || q.state == releasing && q.lease.attempt != nil
}

// observeEnding reports the result of a Commit or Done to the owner.
func (h *Hold) observeEnding(err error, after *callbacks) {
	if !h.ending.isFinal() {
		return
	}
	loss := NotLost
	if err == nil && h.stored == store.NotStored {
		loss = Taken
	}
	event := Event{Kind: Committed, Held: time.Since(h.since), Loss: loss, Ending: h.ending, GoesOn: h.goesOn, Err: err}.of(h)
	if err == nil && h.stored == store.Restored {
		h.report(Event{Kind: Restored, Held: event.Held}.of(h), after)
	}
	h.report(event, after)
}

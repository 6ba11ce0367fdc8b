package engine

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// Release gives the hold back: to the next of the line, or to the store. The
// release happens whatever ctx says; ctx bounds how long to wait for the
// store's answer, and its error is returned when it ends before. Otherwise the
// error is nil, or the fault that kept the store from being told, so that the
// key falls by its TTL. The loss says whether the lease had ended before. Later
// calls do nothing and return the same.
func (h *Hold) Release(ctx context.Context) (Loss, error) { return h.finish(ctx, Abort, nil) }

// finish begins the release and waits for its end.
func (h *Hold) finish(ctx context.Context, ending Ending, record []byte) (Loss, error) {
	h.begin(true, isLong(ctx) && ctx.Err() == nil, ending, record)
	select {
	case <-h.ended:
		return h.outcome()
	default:
	}
	select {
	case <-h.ended:
		return h.outcome()
	case <-ctx.Done():
		return NotLost, ctx.Err()
	}
}

// BeginRelease is Release without waiting for anything.
func (h *Hold) BeginRelease() { h.begin(true, false, Abort, nil) }

// outcome returns how the release ended.
func (h *Hold) outcome() (Loss, error) {
	h.line.shard.mu.Lock()
	defer h.line.shard.mu.Unlock()
	return h.loss, h.err
}

// begin starts the release, once. A hold that its caller never saw is not told
// of. Where the caller waits for the end, the release may be sent on its
// goroutine. ending and record are those of an attempt.
func (h *Hold) begin(seen, waits bool, ending Ending, record []byte) {
	l := h.line
	l.shard.mu.Lock()
	if h.ended != nil {
		l.shard.mu.Unlock()
		return
	}
	mine := h.current()
	h.ended, h.until = make(chan struct{}), h.lease.validUntil
	if h.overdue != nil {
		h.overdue.Stop()
	}
	h.unseen, h.ending, h.record = !seen, ending, record
	freeing, ready, late := false, false, false
	var r store.Request
	switch {
	case mine:
		if freeing = !l.pass(); freeing {
			r, ready = l.beginFreeing(h)
		}
	case h.request.Attempt != nil && ending != Interrupt:
		late = true
	case h.loss == Closed:
		l.exorcise(h.token)
	default:
		// Lost while the holder ran. A renewal that came late may have kept the
		// key, and nobody runs under it now.
		l.exorcise(h.token)
		h.engine.spawnDiscard(place{h.request.Key, h.token}, nil, h.until)
	}
	var after afterwards
	if !freeing && !late {
		h.settle(nil, &after)
	}
	cancel := h.cancel
	l.shard.mu.Unlock()
	cancelWith(cancel, nil)
	if late {
		h.endLate()
	}
	if ready {
		r.Inline = waits
		l.sendRelease(r)
	}
	after.run()
}

// free gives the line's lease back to the store.
func (l *line) free() {
	if r, ready := l.beginFreeing(nil); ready {
		l.sendRelease(r)
	}
}

// beginFreeing begins to give the line's lease back to the store, after its
// renewals in flight have ended. The last holder, if there is one, hears of it.
// It returns the request to send, and whether that can be done now.
func (l *line) beginFreeing(last *Hold) (r store.Request, ready bool) {
	lease := l.lease
	l.state, l.running = freeing, nil
	lease.holder, lease.last = nil, last
	l.engine.schedule.drop(lease)
	l.engine.work.Add()
	if lease.inFlight > 0 {
		lease.afterRenewals = func() { l.sendRelease(l.releaseRequest(lease)) }
		return r, false
	}
	return l.releaseRequest(lease), true
}

// releaseRequest returns the request that releases the lease. If others wait
// here, it puts the line's next episode behind those who wait elsewhere.
func (l *line) releaseRequest(lease *lease) store.Request {
	next := Request{TTL: lease.ttl}
	if l.callers > l.tries && lease.attempt == nil && l.first.hold.request.Attempt == nil {
		next = l.first.hold.request
		l.rejoin = l.engine.newToken()
		l.listen() // for who came while the release waited
	}
	l.again, l.promised = false, false
	r := l.request(lease.token, next)
	r.Bound, r.Rejoin, r.Alone = l.engine.boundOf(lease.ttl), l.rejoin, !lease.wanted
	switch {
	case lease.attempt == nil:
	case lease.last == nil:
		r = Abort.of(r, lease.attempt, nil)
	default:
		r = lease.last.ending.of(r, lease.attempt, lease.last.record)
	}
	l.freed = r
	return r
}

// sendRelease releases the lease and moves the line on. If the store did not
// take the release, it is sent again and again beside the line until the
// lease's end; a line that meets the token meanwhile releases it too. But an
// attempt that is done is first committed again.
func (l *line) sendRelease(r store.Request) {
	if r.Ending == store.Abort {
		l.engine.store.Release(r, l.hearReleased)
		return
	}
	l.engine.release(r, time.Now().Add(commitTime), l.hearReleased)
}

// released takes in the store's answer to a release, and goes on.
func (l *line) released(released store.Released, err error) {
	defer l.engine.work.Done()
	var after afterwards
	l.shard.mu.Lock()
	l.releasedBy(l.lease, released, err, &after)
	l.shard.mu.Unlock()
	after.runAside(l.engine)
}

// releasedBy tells the last holder of the answer, and moves the line on.
func (l *line) releasedBy(lease *lease, released store.Released, err error, after *afterwards) {
	if err != nil || lease.seenAgain {
		l.engine.spawnDiscard(place{l.key, lease.token}, l.aborted(), lease.validUntil)
	}
	last := lease.last
	lease.last = nil // the line may live long
	if last != nil {
		if err == nil && released.End == store.NotHeld && last.loss == NotLost {
			last.tell(Taken, after)
		}
		last.stored = released.Stored
		last.settle(err, after)
	}
	if r := l.freed; r.Ending != store.Abort && err == nil && released.Stored != store.NotStored {
		l.settleBy(r.Attempt, verdictOf(r.Ending), r.Record)
	}
	if err != nil {
		l.doubt = faultOf(err)
	}
	l.goOn(lease, released, err)
}

// goOn moves the line on after a release.
func (l *line) goOn(lease *lease, released store.Released, err error) {
	switch r := l.freed; {
	case err != nil, released.End == store.Unsure:
		// The token that rejoins may stand in line, or hold the key by now.
		if r.Rejoin == "" {
			l.proceed(true)
			return
		}
		l.contended = false
		l.resume(r.Rejoin, 0)
	case released.End == store.Kept:
		l.kept(lease, r, released.Since)
	case released.End == store.Handed && r.Rejoin != "":
		l.doubt = nil
		l.refused()
		l.resume(r.Rejoin, jitter(lesser(r.Claim, safetyTime)))
	default:
		l.proceed(released.End != store.Freed)
	}
}

// kept takes in that the key stayed with this process: nobody else waits for
// it. It is a new lease, under the token that rejoined, with what is left of
// the old one's fencing numbers.
func (l *line) kept(old *lease, r store.Request, since time.Time) {
	granted := r
	granted.Token = r.Rejoin
	l.start(r.Rejoin)
	lease := newLease(l, granted, since)
	if !lease.valid(lease.begun) {
		l.tooSlow(granted)
		l.ask()
		return
	}
	lease.fences = old.fences
	lease.lineSeen(0, since)
	l.doubt = nil
	l.lease = lease
	l.next(Passed, lease.begun)
}

// settle ends the release of a hold: err is the fault that kept the store from
// being told, if any.
func (h *Hold) settle(err error, after *afterwards) {
	h.err = err
	if !h.gone {
		h.engine.work.Done()
	}
	if !h.unseen && h.engine.hooks.Observe != nil {
		h.observeEnding(err, after)
		event := Event{Kind: Released, Key: h.request.Key, Held: time.Since(h.since), Loss: h.loss, Err: err}
		after.add(func() { h.engine.observe(event) })
	}
	after.ended = h.ended
}

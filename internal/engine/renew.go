package engine

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// lastRenewals is how many command bounds before its end a lease is renewed though
// others have not been: those who hold it up may be on a part of the store that
// does not answer.
const finalRenewalBounds = 2

// longHold is how many TTLs a hold lasts before the owner is told of it.
const longHoldTTLs = 3

// attend sees to a held lease whose time is come: it ends one whose validity is
// over, whatever its renewals are doing, and renews one that is due.
func (e *Engine) onDue(lease *lease) {
	q := lease.queue
	var after callbacks
	q.shard.mu.Lock()
	now, h := time.Now(), lease.holder
	switch {
	case q.lease != lease || h == nil:
	case !lease.valid(now):
		q.lastFault = errNoAnswer
		q.lose(Expired, &after)
	case lease.renewIsDue(now) && h.loss == NotLost:
		lease.renewAt = time.Time{}
		switch {
		case lease.awaitsRenewal: // for too long
			lease.awaitsRenewal = false
			e.renewFor(lease, func() {})
		case e.renewals.enter(lease):
			e.renewFor(lease, e.renewNext)
		default:
			lease.awaitsRenewal = true
			lease.renewAt = lease.validUntil.Add(-finalRenewalBounds * e.boundOf(lease.ttl))
		}
		e.schedule.set(lease)
	default:
		e.schedule.set(lease)
	}
	q.shard.mu.Unlock()
	after.runAsync(e)
}

// renewNext gives the place of a renewal that has ended to the next lease that
// still wants one.
func (e *Engine) renewNext() {
	for lease := e.renewals.next(); lease != nil; lease = e.renewals.next() {
		q := lease.queue
		q.shard.mu.Lock()
		h := lease.holder
		wants := lease.awaitsRenewal && q.lease == lease && h != nil && h.request.Renew && h.loss == NotLost
		lease.awaitsRenewal = false
		if wants {
			lease.renewAt = time.Time{}
			e.schedule.set(lease)
			e.renewFor(lease, e.renewNext)
		}
		q.shard.mu.Unlock()
		if wants {
			return
		}
	}
}

// renewFor renews a held lease for its holder.
func (e *Engine) renewFor(lease *lease, landed func()) {
	h := lease.holder
	lease.inFlight++
	fences := lease.fences.toReserve(h.request, lease.queue.callers)
	e.renew(lease, h, h.request.TTL, fences, landed, func(bool, error) {})
}

// renew sends one renewal for a holder and takes in its answer. It calls landed as
// soon as the answer is there, and tells done whether the lease is still the
// holder's; an error is a fault, after which nobody knows. The caller has counted
// the renewal as in flight.
func (e *Engine) renew(
	lease *lease, h *Hold, ttl time.Duration, fences int, landed func(), done func(mine bool, err error),
) {
	q := lease.queue
	r := store.Request{
		Key: h.request.Key, Token: h.token, TTL: ttl, Bound: e.boundOf(max(ttl, h.request.TTL)), Fences: fences,
		Attempt: h.request.Attempt,
	}
	e.work.Add()
	e.store.Renew(r, func(renewal store.Renewal, err error) {
		defer e.work.Done()
		var after callbacks
		q.shard.mu.Lock()
		lease.renewalDone()
		if q.lease == lease && lease.holder != nil {
			q.renewed(renewal, err, ttl, &after)
		}
		q.shard.mu.Unlock()
		landed()
		after.add(func() { done(renewal.Held, err) })
		after.runAsync(e)
	})
}

// renewed takes in the answer to a renewal of the line's held lease.
func (q *queue) renewed(renewal store.Renewal, err error, ttl time.Duration, after *callbacks) {
	lease, h, now := q.lease, q.lease.holder, time.Now()
	event := Event{Kind: Renewed, Key: q.key, Held: now.Sub(h.since), Err: err}
	switch {
	case err != nil:
		q.renewFrom(now.Add(retryOf(lease.ttl)))
	case !renewal.Held:
		q.lose(Taken, after)
		return
	default:
		lease.renewed(renewal, ttl)
		q.renewFrom(renewal.Since.Add(h.request.TTL / 3))
	}
	after.add(func() { q.engine.observe(event) })
	if !h.reportedLong && event.Held > longHoldTTLs*h.request.TTL {
		h.reportedLong = true
		after.add(func() { q.engine.observe(Event{Kind: HeldLong, Key: q.key, Held: event.Held}) })
	}
}

// renewFrom sets the next renewal of the held lease, if its holder is renewed.
func (q *queue) renewFrom(at time.Time) {
	if h := q.lease.holder; h.request.Renew && h.loss == NotLost {
		q.lease.renewAt = at
	}
	q.engine.schedule.set(q.lease)
}

// retryOf returns how long after a failed renewal the next one follows.
func retryOf(ttl time.Duration) time.Duration { return min(ttl/20, maxPause) }

// landed counts a renewal in flight as ended.
func (l *lease) renewalDone() {
	l.inFlight--
	if l.inFlight == 0 && l.afterRenewals != nil {
		next := l.afterRenewals
		l.afterRenewals = nil
		next()
	}
}

// Extend renews the hold's lease once, to live for at least ttl from now. The
// next holder does not inherit the longer life. It returns the loss, if the
// lease is lost or was released, or an error: a fault, or that of ctx when it
// ends before the answer comes.
func (h *Hold) Extend(ctx context.Context, ttl time.Duration) (Loss, error) {
	q := h.queue
	q.shard.mu.Lock()
	if h.loss != NotLost || !h.isCurrent() {
		loss := h.loss
		q.shard.mu.Unlock()
		if loss == NotLost {
			loss = Taken // it was released: it is another's now
		}
		return loss, nil
	}
	lease := h.lease
	lease.inFlight++
	lease.extended = true
	q.shard.mu.Unlock()

	type result struct {
		mine bool
		err  error
	}
	done := make(chan result, 1)
	h.engine.renew(lease, h, ttl, 0, func() {}, func(mine bool, err error) { done <- result{mine, err} })
	select {
	case r := <-done:
		if r.err == nil && !r.mine {
			return Taken, nil
		}
		return h.lossNow(), r.err
	case <-ctx.Done():
		return NotLost, ctx.Err()
	}
}

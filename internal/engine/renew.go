package engine

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// finalRenewalBounds is how many command bounds before its end a lease is renewed even
// if the renewalLimiter has no room. The renewals that fill the limiter may be stuck at
// a server that does not answer.
const finalRenewalBounds = 2

// longHoldTTLs is how many TTLs a hold lasts before the first HeldLong event.
const longHoldTTLs = 3

// onDue handles a held lease that the schedule reports. It ends a lease at the end
// of its validity, even if a renewal is in flight. It renews a lease when that is due.
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
		case lease.awaitsRenewal: // the final renewal
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
	after.run(e)
}

// renewNext gives the place of a renewal that has ended to the next lease that waits
// for one.
func (e *Engine) renewNext() {
	for lease := e.renewals.next(); lease != nil; lease = e.renewals.next() {
		q := lease.queue
		q.shard.mu.Lock()
		h := lease.holder
		wants := lease.awaitsRenewal && q.lease == lease && h != nil && h.request.Renew && h.loss == NotLost
		lease.awaitsRenewal = false
		if wants {
			lease.renewAt = time.Time{}
			e.renewFor(lease, e.renewNext)
		}
		q.shard.mu.Unlock()
		if wants {
			return
		}
	}
}

// renewFor renews a held lease for its holder.
func (e *Engine) renewFor(lease *lease, replied func()) {
	h := lease.holder
	lease.inFlight++
	fences := lease.fences.toReserve(h.request, lease.queue.callers)
	e.renew(lease, h, h.request.TTL, fences, replied, func(bool, error) {})
}

// renew sends one renewal for a holder and handles the reply. It calls replied as soon
// as the reply has arrived. Then it calls done with whether the holder still has the
// lease; with an error, that is unknown. The caller has counted the renewal in
// lease.inFlight.
func (e *Engine) renew(
	lease *lease, h *Hold, ttl time.Duration, fences int, replied func(), done func(mine bool, err error),
) {
	q := lease.queue
	r := store.RenewRequest{
		Target: store.Target{Key: h.request.Key, Limit: h.request.Limit, Token: h.token, TTL: ttl, Bound: e.boundOf(max(ttl, h.request.TTL))},
		Fences: fences, Attempt: h.request.Attempt,
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
		replied()
		after.add(func() { done(renewal.Held, err) })
		after.run(e)
	})
}

// renewed applies the reply to a renewal of the queue's held lease.
func (q *queue) renewed(renewal store.Renewal, err error, ttl time.Duration, after *callbacks) {
	lease, h, now := q.lease, q.lease.holder, time.Now()
	event := Event{Kind: Renewed, Held: now.Sub(h.since), Err: err, Repeated: err != nil && h.renewFailed}.of(h)
	h.renewFailed = err != nil
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
	q.engine.report(event, after)
	if event.Held > h.nextReport() {
		long := Event{Kind: HeldLong, Held: event.Held, Repeated: h.reportedLong != 0, Origin: h.request.Caller}.of(h)
		h.reportedLong = event.Held
		q.engine.report(long, after)
	}
}

// nextReport returns the age of the hold after which it is reported as HeldLong. The age
// doubles from event to event.
func (h *Hold) nextReport() time.Duration {
	return max(longHoldTTLs*h.request.TTL, 2*h.reportedLong)
}

// renewFrom sets the time of the next renewal of the held lease, if its holder wants
// renewal.
func (q *queue) renewFrom(at time.Time) {
	if h := q.lease.holder; h.request.Renew && h.loss == NotLost {
		q.lease.renewAt = at
	}
	q.engine.schedule.set(q.lease)
}

// retryOf returns the pause between a failed renewal and the next one.
func retryOf(ttl time.Duration) time.Duration { return min(ttl/20, maxPause) }

// renewalDone counts a renewal in flight as ended.
func (l *lease) renewalDone() {
	l.inFlight--
	if l.inFlight == 0 && l.afterRenewals != nil {
		l.afterRenewals()
	}
}

// Extend renews the hold's lease once, so that it lives for at least ttl from now. The
// next holder does not inherit the longer TTL. Extend returns the loss if the lease is
// lost or was released. The error is a fault, or ctx's error if ctx ends before the
// reply.
func (h *Hold) Extend(ctx context.Context, ttl time.Duration) (Loss, error) {
	q := h.lease.queue
	q.shard.mu.Lock()
	if loss := h.endedBy(); loss != NotLost { // also if it was released: the lease belongs to another now
		q.shard.mu.Unlock()
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

package engine

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// lastRenewals is how many command bounds before its end a lease is renewed though
// others have not been: those who hold it up may be on a part of the store that
// does not answer.
const lastRenewals = 2

// longHold is how many TTLs a hold lasts before the owner is told of it.
const longHold = 3

// attend sees to a held lease whose time is come: it ends one whose validity is
// over, whatever its renewals are doing, and renews one that is due.
func (e *Engine) attend(lease *lease) {
	l := lease.line
	var after afterwards
	l.shard.mu.Lock()
	now, h := time.Now(), lease.holder
	switch {
	case l.lease != lease || h == nil:
	case !lease.valid(now):
		l.doubt = errNoAnswer
		l.lose(Expired, &after)
	case lease.renewIsDue(now) && h.loss == NotLost:
		lease.renewAt = time.Time{}
		switch {
		case lease.awaits: // for too long
			lease.awaits = false
			e.renewFor(lease, func() {})
		case e.pace.enter(lease):
			e.renewFor(lease, e.renewNext)
		default:
			lease.awaits = true
			lease.renewAt = lease.validUntil.Add(-lastRenewals * e.boundOf(lease.ttl))
		}
		e.schedule.set(lease)
	default:
		e.schedule.set(lease)
	}
	l.shard.mu.Unlock()
	after.runAside(e)
}

// renew sends one renewal for a holder and takes in its answer. It calls landed as
// soon as the answer is there, and tells done whether the lease is still the
// holder's; an error is a fault, after which nobody knows. The caller has counted
// the renewal as in flight.
func (e *Engine) renew(
	lease *lease, h *Hold, ttl time.Duration, fences int, landed func(), done func(mine bool, err error),
) {
	l := lease.line
	r := store.Request{
		Key: h.request.Key, Token: h.token, TTL: ttl, Bound: e.boundOf(max(ttl, h.request.TTL)), Fences: fences,
		Attempt: h.request.Attempt,
	}
	e.work.Add()
	e.store.Renew(r, func(renewal store.Renewal, err error) {
		defer e.work.Done()
		var after afterwards
		l.shard.mu.Lock()
		lease.landed()
		if l.lease == lease && lease.holder != nil {
			l.renewed(renewal, err, ttl, &after)
		}
		l.shard.mu.Unlock()
		landed()
		after.add(func() { done(renewal.Held, err) })
		after.runAside(e)
	})
}

// renewed takes in the answer to a renewal of the line's held lease.
func (l *line) renewed(renewal store.Renewal, err error, ttl time.Duration, after *afterwards) {
	lease, h, now := l.lease, l.lease.holder, time.Now()
	event := Event{Kind: Renewed, Key: l.key, Held: now.Sub(h.since), Err: err}
	switch {
	case err != nil:
		l.renewFrom(now.Add(retryOf(lease.ttl)))
	case !renewal.Held:
		l.lose(Taken, after)
		return
	default:
		lease.renewed(renewal, ttl)
		l.renewFrom(renewal.Since.Add(h.request.TTL / 3))
	}
	after.add(func() { l.engine.observe(event) })
	if !h.toldLong && event.Held > longHold*h.request.TTL {
		h.toldLong = true
		after.add(func() { l.engine.observe(Event{Kind: HeldLong, Key: l.key, Held: event.Held}) })
	}
}

// renewFrom sets the next renewal of the held lease, if its holder is renewed.
func (l *line) renewFrom(at time.Time) {
	if h := l.lease.holder; h.request.Renew && h.loss == NotLost {
		l.lease.renewAt = at
	}
	l.engine.schedule.set(l.lease)
}

// retryOf returns how long after a failed renewal the next one follows.
func retryOf(ttl time.Duration) time.Duration { return min(ttl/20, longestPause) }

// landed counts a renewal in flight as ended.
func (l *lease) landed() {
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
	l := h.line
	l.shard.mu.Lock()
	if h.loss != NotLost || !h.current() {
		loss := h.loss
		l.shard.mu.Unlock()
		if loss == NotLost {
			loss = Taken // it was released: it is another's now
		}
		return loss, nil
	}
	lease := h.lease
	lease.inFlight++
	lease.extended = true
	l.shard.mu.Unlock()

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

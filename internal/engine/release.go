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
func (h *Hold) Release(ctx context.Context) (Loss, error) {
	h.BeginRelease()
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
func (h *Hold) BeginRelease() { h.begin(true) }

// outcome returns how the release ended.
func (h *Hold) outcome() (Loss, error) {
	h.line.shard.mu.Lock()
	defer h.line.shard.mu.Unlock()
	return h.loss, h.err
}

// begin starts the release, once. A hold that its caller never saw is not told
// of.
func (h *Hold) begin(seen bool) {
	l := h.line
	l.shard.mu.Lock()
	if h.ended != nil {
		l.shard.mu.Unlock()
		return
	}
	mine := h.current()
	h.ended = make(chan struct{})
	h.expiry.Stop()
	if h.overdue != nil {
		h.overdue.Stop()
	}
	h.unseen = !seen
	freeing := false
	switch {
	case mine:
		freeing = !l.pass(h)
	case h.loss == Closed:
		l.exorcise(h.lease.token)
	default:
		// Lost while the holder ran. A renewal that came late may have kept the
		// key, and nobody runs under it now.
		l.exorcise(h.lease.token)
		over := h.lease.validUntil
		h.engine.spawn(func() { h.engine.discard(l.key, h.lease.token, over) })
	}
	var after afterwards
	if !freeing {
		h.settle(nil, &after)
	}
	l.shard.mu.Unlock()
	h.cancel(nil)
	after.run()
}

// free gives the line's lease back to the store, after its renewals in flight
// have ended. The last holder, if there is one, hears of it.
func (l *line) free(last *Hold) {
	lease := l.lease
	l.state = freeing
	lease.holder = nil
	l.engine.renewals.cancel(lease)
	l.engine.work.Add()
	send := func() {
		go func() {
			defer l.engine.work.Done()
			l.engine.sendRelease(lease, last)
		}()
	}
	if lease.inFlight > 0 {
		lease.afterRenewals = send
		return
	}
	send()
}

// sendRelease frees the key and moves the line on. If the store did not take
// the release, it is sent again and again beside the line until the lease's
// end; a line that meets the token meanwhile releases it too.
func (e *Engine) sendRelease(lease *lease, last *Hold) {
	l := lease.line
	ctx := context.Background()
	r := Request{TTL: lease.ttl}
	if last != nil {
		ctx = last.parent
	}
	mine, err := e.store.Release(ctx, l.request(lease.token, r))

	l.shard.mu.Lock()
	if err != nil {
		l.doubt = faultOf(err)
	}
	if err != nil || lease.seenAgain {
		over := lease.validUntil
		e.spawn(func() { e.discard(l.key, lease.token, over) })
	}
	var after afterwards
	if last != nil {
		if !mine && err == nil && last.loss == NotLost {
			last.tell(Taken, &after)
		}
		last.settle(err, &after)
	}
	l.proceed()
	l.shard.mu.Unlock()
	after.run()
}

// settle ends the release of a hold: err is the fault that kept the store from
// being told, if any.
func (h *Hold) settle(err error, after *afterwards) {
	h.err = err
	if !h.gone {
		h.engine.work.Done()
	}
	if !h.unseen {
		event := Event{Kind: Released, Key: h.line.key, Held: time.Since(h.since), Loss: h.loss, Err: err}
		after.add(func() { h.engine.observe(event) })
	}
	ended := h.ended
	after.add(func() { close(ended) }) // last: who waits for it has been told all
}

// discard releases a dead token, so that it does not hold its key until the
// TTL. It tries at least once, and again until over, as long as the store does
// not answer. Once the engine is being closed it tries only once more.
//
// Nobody waits for it, so each try may take several command bounds: a client
// that is short of connections is not helped by more commands.
func (e *Engine) discard(key, token string, over time.Time) {
	r := store.Request{Key: key, Token: token, Bound: discardBounds * e.bound}
	for tries, last := 0, false; ; tries++ {
		_, err := e.store.Release(context.Background(), r)
		if err == nil || last || !faultOf(err).Passing || time.Now().After(over) {
			return
		}
		timer := time.NewTimer(pauseOf(tries, 0))
		select {
		case <-timer.C:
		case <-e.closing:
			timer.Stop()
			last = true
		}
	}
}

// discardBounds is how many command bounds a try of discard may take.
const discardBounds = 4

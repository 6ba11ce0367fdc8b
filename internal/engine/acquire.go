package engine

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// Acquire returns the hold once the caller holds the lease. If the caller does not get
// the lease, the error is a *Refusal and no key is left behind. When ctx ends, Acquire
// returns at once. Exception: while the store uses the goroutine of the caller, it
// returns within store.InlineTime. ctx is the parent of the hold's context, unless the
// request has another one.
func (e *Engine) Acquire(ctx context.Context, r Request) (*Hold, error) {
	return e.acquire(ctx, &r, "")
}

// acquire is Acquire, or Accept with the token of a ticket.
func (e *Engine) acquire(ctx context.Context, r *Request, ticket string) (*Hold, error) {
	var since time.Time
	if r.Wait != WaitForever || e.hooks.Observe != nil {
		since = time.Now()
	}
	w, how, returned := e.newWaiter(ctx, r), unseen, false
	w.hold.since = since
	defer func() {
		if !returned {
			w.abandon(how)
		}
	}()
	refusal := e.enter(ctx, w, ticket)
	if refusal == nil {
		refusal = e.await(ctx, w, since)
	}
	if e.hooks.Observe != nil {
		how = begun
		w.observeOutcome(since, refusal)
	}
	returned = true
	if refusal != nil {
		return nil, refusal
	}
	return w.hold, nil
}

func (e *Engine) newWaiter(ctx context.Context, r *Request) *waiter {
	h := &Hold{engine: e, request: *r, shard: e.shardOf(r.Key), acquireCtx: ctx}
	if r.Parent == nil {
		h.request.Parent = ctx //nolint:fatcontext // no loop
	}
	if r.Attempt != nil {
		h.request.Limit = store.Exclusive
	}
	h.waiter = waiter{hold: h, nowait: r.Wait == 0}
	return &h.waiter
}

// mayAskInline reports whether a caller may send the first request to the store on its
// own goroutine. The caller only waits for the answer otherwise. But a caller that
// works for the store cannot notice the end of its wait or of its context.
func mayAskInline(ctx context.Context, wait time.Duration) bool {
	return (wait <= 0 || wait >= store.InlineTime) && isLong(ctx)
}

// isLong reports whether a context has no deadline within the time for which the store
// may keep an inline caller.
func isLong(ctx context.Context) bool {
	end, ends := ctx.Deadline()
	return !ends || time.Until(end) >= store.InlineTime
}

// enter adds the waiter to the queue of its key, or refuses it at once. A waiter with a ticket has
// a queue of its own.
func (e *Engine) enter(ctx context.Context, w *waiter, ticket string) *Refusal {
	if ctx.Err() != nil {
		return (&Refusal{Reason: TimedOut, Early: true}).endedBy(ctx)
	}
	unserved := e.refuseUnserved(w.hold.request.Key)
	s, mayLead := w.hold.shard, mayAskInline(ctx, w.hold.request.Wait)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return &Refusal{Reason: ClosedDown}
	}
	if refusal := e.refuseOpen(s, &w.hold.request); refusal != nil {
		s.mu.Unlock()
		return refusal
	}
	if unserved != nil && (ticket != "" || s.queues[w.hold.request.Key].needsStore(w)) {
		if w.endsOnFault = w.hold.request.FailOpen; !w.endsOnFault {
			s.mu.Unlock()
			return unserved
		}
	}
	root := e.rootOf(s, w.hold.request.Key)
	if isMismatch(root.running, w.hold.request.Attempt) {
		first := root.firstRunning()
		s.mu.Unlock()
		return &Refusal{Reason: Mismatch, First: first}
	}
	if root.committing > 0 && w.hold.request.Attempt != nil {
		s.mu.Unlock()
		return &Refusal{Reason: Unavailable, Fault: errCommitting}
	}
	l := root.listOf(w.hold.request.Limit)
	if ticket != "" {
		l = root.ticketList(ticket)
	}
	busy, starts := l.isBusy() || root.waitsForLost(w.hold.request.Attempt), l.mayStart()
	if w.nowait && busy {
		first := root.firstRunning()
		s.mu.Unlock()
		return &Refusal{Reason: Busy, First: first}
	}
	// While a key is being released it is not busy yet for the first waiter.
	queued := !w.nowait && (busy || l.first != nil && !starts)
	if queued {
		if refusal := l.markQueued(w); refusal != nil {
			s.mu.Unlock()
			return refusal
		}
		l.listen()
	}
	l.push(w)
	s.arrivals++
	w.arrived = s.arrivals
	contended := starts && !queued && l.expectsToWait(&w.hold.request)
	if starts && mayLead && !queued {
		q := l.idleQueue()
		q.openEpisode(contended)
		r := q.askRequest()
		q.joined = r.Join
		s.mu.Unlock()
		r.Inline = true
		q.send(r, contended)
		return nil
	}
	w.updates = make(chan struct{}, 1)
	switch {
	case starts:
		l.idleQueue().startEpisode(queued || contended)
	case w.nowait:
		// A nowait caller waits for one answer, and not for the next check. Behind
		// another command it waits no longer than for a command of its own.
		w.hold.request.Wait = e.boundOf(w.hold.request.TTL)
		l.wakeFirst()
	case w.endsOnFault:
		l.wakeFirst()
	}
	s.mu.Unlock()
	if queued {
		w.observeWaiting()
	}
	return nil
}

// settledInline reports whether a waiter that sent its own request has been granted the
// lease or refused meanwhile. If not, the waiter gets a channel for updates.
func (w *waiter) settledInline() bool {
	s := w.hold.shard
	s.mu.Lock()
	settled := w.list == nil
	if !settled {
		w.updates = make(chan struct{}, 1)
	}
	queued := w.queued
	s.mu.Unlock()
	if queued {
		w.observeWaiting()
	}
	return settled
}

// await returns nil once the waiter has been granted the lease.
func (e *Engine) await(ctx context.Context, w *waiter, begun time.Time) *Refusal {
	waiting := w.updates != nil || !w.settledInline()
	var over <-chan time.Time
	if wait := w.hold.request.Wait; waiting && wait > 0 {
		timer := time.NewTimer(wait - time.Since(begun))
		defer timer.Stop()
		over = timer.C
	}
	for waiting {
		select {
		case _, waiting = <-w.updates:
			if waiting {
				w.observeWaiting()
			}
		case <-over:
			if refusal := e.leave(w); refusal != nil {
				return refusal
			}
			// Settled at the same moment: the channel of updates is closed.
		case <-ctx.Done():
			if refusal := e.leave(w); refusal != nil {
				return refusal.endedBy(ctx)
			}
			waiting = false
		}
	}
	if w.refusal == nil && ctx.Err() != nil {
		w.hold.startRelease(unseen, EndAbort, nil) // ctx ended at the moment of the grant: the next waiter gets the lease
		return (&Refusal{Reason: TimedOut}).endedBy(ctx)
	}
	return w.refusal
}

// leave removes the waiter from its list. It returns nil if the waiter was granted the
// lease or refused before.
func (e *Engine) leave(w *waiter) *Refusal {
	refusal := w.giveUp()
	select {
	case _, open := <-w.updates:
		if open { // an update that came before the end of the wait
			w.observeWaiting()
		}
	default:
	}
	return refusal
}

// giveUp removes the waiter from its list and returns its refusal. It returns nil if
// the waiter was granted the lease or refused before.
func (w *waiter) giveUp() *Refusal {
	w.hold.shard.mu.Lock()
	defer w.hold.shard.mu.Unlock()
	l := w.list
	if l == nil {
		return nil
	}
	l.remove(w)
	refusal := l.giveUpRefusal(w)
	if l.first == nil && !l.limit.IsShared() {
		l.exclusiveQueue().wake()
	}
	l.balance()
	return refusal
}

// errAbandoned is the fault of a caller that has panicked or whose goroutine ends.
var errAbandoned = errors.New("the caller has panicked or ended its goroutine meanwhile")

// abandon makes the waiter leave its list, or release what it was granted, because the caller
// has panicked or its goroutine ends: by an observer, by a hook of the store's client, or by the
// context of the caller. Each Waiting event has one that ends the wait.
func (w *waiter) abandon(how releaseMode) {
	if w.giveUp() == nil && w.hold.lease != nil {
		w.hold.WaiveMinHold()
		w.hold.startRelease(how, EndAbort, nil)
	}
	if how == unseen && w.queued {
		refusal := &Refusal{Reason: Unavailable, Fault: errAbandoned}
		w.hold.engine.observeLater(queuedEvent{Event: Event{Kind: Refused, Queued: true, Err: refusal}.of(w.hold)})
	}
}

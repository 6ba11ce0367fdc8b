package engine

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// WaitForever is a Request's wait that ends only with the caller's context.
const WaitForever = time.Duration(-1)

// A Request says what a caller wants.
type Request struct {
	Key string
	// TTL is the life of the lease without renewal.
	TTL time.Duration
	// Wait is how long to stand in line: 0 not at all, WaitForever without end.
	Wait time.Duration
	// Renew keeps the lease alive for as long as it is held.
	Renew bool
	// MaxHold ends the holder's context after this time; 0 never.
	MaxHold time.Duration
	// Fencing gives the hold a fencing number.
	Fencing bool
	// Attempt is the idempotent request that the lease is for; nil is none. A
	// lease of one is never passed on: another attempt needs a token of its own.
	Attempt *Attempt
}

// Acquire returns once the caller holds the lease, or does not get it: then
// the error is a *Refusal. It returns when ctx ends, at once or, where the store
// uses its goroutine, within store.InlineTime, and leaves no key behind. ctx is
// the parent of the hold's context.
func (e *Engine) Acquire(ctx context.Context, r Request) (*Hold, error) {
	var begun time.Time
	if r.Wait != WaitForever || e.hooks.Observe != nil {
		begun = time.Now()
	}
	w := e.newWaiter(ctx, r)
	refusal := e.enter(ctx, w)
	if refusal == nil {
		refusal = e.await(ctx, w, begun)
	}
	switch {
	case refusal == nil:
	case refusal.Reason == Done:
		e.acquired(w, begun, Event{Kind: Replayed})
		return nil, refusal
	default:
		e.acquired(w, begun, Event{Kind: Refused, Err: refusal})
		return nil, refusal
	}
	e.acquired(w, begun, Event{Kind: Acquired, Handover: w.hold.handover})
	return w.hold, nil
}

// acquired tells the owner how an acquisition ended.
func (e *Engine) acquired(w *waiter, begun time.Time, event Event) {
	if e.hooks.Observe != nil {
		event.Key, event.Queued, event.Waited = w.hold.request.Key, w.queued, time.Since(begun)
		e.hooks.Observe(event)
	}
}

func (e *Engine) newWaiter(ctx context.Context, r Request) *waiter {
	h := &Hold{engine: e, request: r, parent: ctx}
	h.waiter = waiter{hold: h, try: r.Wait == 0, patience: r.Wait}
	return &h.waiter
}

// leads reports whether a caller may put the first question on its own goroutine.
// It would only wait for the answer otherwise, but it cannot be called away
// meanwhile.
func leads(ctx context.Context, wait time.Duration) bool {
	return (wait <= 0 || wait >= store.InlineTime) && isLong(ctx)
}

// isLong reports whether a context does not end by itself before the store would
// let go of an inline caller.
func isLong(ctx context.Context) bool {
	end, ends := ctx.Deadline()
	return !ends || time.Until(end) >= store.InlineTime
}

// enter puts the waiter in its line, or refuses it at the door.
func (e *Engine) enter(ctx context.Context, w *waiter) *Refusal {
	if ctx.Err() != nil {
		return (&Refusal{Reason: TimedOut}).endedBy(ctx)
	}
	s, mayLead := e.shardOf(w.hold.request.Key), leads(ctx, w.patience)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return &Refusal{Reason: ClosedDown}
	}
	l := e.lineOf(s, w.hold.request.Key)
	w.hold.line = l
	if contradict(l.running, w.hold.request.Attempt) {
		s.mu.Unlock()
		return &Refusal{Reason: Mismatch}
	}
	if w.try && l.isBusy() {
		s.mu.Unlock()
		return &Refusal{Reason: Busy}
	}
	// A key that is being freed is not busy yet for the first of its line.
	queued := !w.try && (l.first != nil || l.isBusy())
	if queued {
		if refusal := l.queue(w); refusal != nil {
			s.mu.Unlock()
			return refusal
		}
		l.listen()
	}
	l.join(w)
	if l.state == idle && mayLead {
		l.open(false)
		q := l.question()
		s.mu.Unlock()
		q.Inline = true
		e.lead(w, q)
		return nil
	}
	w.news = make(chan struct{}, 1)
	switch {
	case l.state == idle:
		l.begin(false)
	case w.try:
		// It waits for one answer, not for the next poll, and behind another
		// command no longer than for its own.
		w.patience = e.boundOf(w.hold.request.TTL)
		l.wake()
	}
	s.mu.Unlock()
	if queued {
		e.observe(Event{Kind: Waiting, Key: w.hold.request.Key})
	}
	return nil
}

// lead puts the first question on the caller's goroutine. If that does not come
// back, because a hook of the store's client has panicked, the caller is gone.
func (e *Engine) lead(w *waiter, q store.Request) {
	returned := false
	defer func() {
		if !returned && e.leave(w) == nil && w.refusal == nil {
			w.hold.begin(false, false, Abort, nil)
		}
	}()
	w.hold.line.put(q, false)
	returned = true
}

// isBusy reports whether it is known that a newcomer would have to wait.
func (l *line) isBusy() bool {
	switch l.state {
	case held, passing:
		return true
	case asking:
		return l.contended && l.doubt == nil && l.first != nil
	case idle, freeing:
	}
	return false
}

// settled reports whether a waiter that put its question itself has been
// settled meanwhile. Otherwise it will hear of it.
func (w *waiter) settled() bool {
	s := w.hold.line.shard
	s.mu.Lock()
	settled := w.line == nil
	if !settled {
		w.news = make(chan struct{}, 1)
	}
	queued := w.queued
	s.mu.Unlock()
	if queued {
		w.hold.engine.observe(Event{Kind: Waiting, Key: w.hold.request.Key})
	}
	return settled
}

// await returns nil when the waiter was granted the lease.
func (e *Engine) await(ctx context.Context, w *waiter, begun time.Time) *Refusal {
	waiting := w.news != nil || !w.settled()
	var over <-chan time.Time
	if waiting && w.patience > 0 {
		timer := time.NewTimer(w.patience - time.Since(begun))
		defer timer.Stop()
		over = timer.C
	}
	for waiting {
		select {
		case _, waiting = <-w.news:
			if waiting {
				e.observe(Event{Kind: Waiting, Key: w.hold.request.Key})
			}
		case <-over:
			if refusal := e.leave(w); refusal != nil {
				return refusal
			}
			over = nil // settled at the same moment
		case <-ctx.Done():
			if refusal := e.leave(w); refusal != nil {
				return refusal.endedBy(ctx)
			}
			waiting = false
		}
	}
	if w.refusal == nil && ctx.Err() != nil {
		w.hold.begin(false, false, Abort, nil) // a grant that crossed the end of ctx is passed on
		return (&Refusal{Reason: TimedOut}).endedBy(ctx)
	}
	return w.refusal
}

// leave takes the waiter out of its line. It returns nil if the waiter was
// settled before.
func (e *Engine) leave(w *waiter) *Refusal {
	refusal := w.hold.line.dismiss(w)
	select {
	case _, open := <-w.news:
		if open { // told late, but before its end
			e.observe(Event{Kind: Waiting, Key: w.hold.request.Key})
		}
	default:
	}
	return refusal
}

// dismiss takes the waiter out of the line, and returns the refusal of one
// whose time is over; nil if the waiter was settled before.
func (l *line) dismiss(w *waiter) *Refusal {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	if w.line == nil {
		return nil
	}
	l.unlink(w)
	refusal := l.gaveUp(w)
	if l.first == nil {
		l.wake()
	}
	return refusal
}

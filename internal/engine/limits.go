package engine

import "sync/atomic"

// limits bound how many callers wait.
type limits struct {
	perKey, total int
	waiting       atomic.Int64 // in all lines
}

// queue notes that a caller has to wait. It returns the refusal of one for whom
// there is no room; nil if there is.
func (l *line) queue(w *waiter) *Refusal {
	limits := &l.engine.limits
	if l.queued >= limits.perKey {
		return &Refusal{Reason: LineFull}
	}
	if limits.waiting.Add(1) > int64(limits.total) {
		limits.waiting.Add(-1)
		return &Refusal{Reason: Overloaded}
	}
	l.queued++
	w.queued = true
	return nil
}

// dequeue notes that a caller does not wait any more.
func (l *line) dequeue(w *waiter) {
	if w.queued {
		l.queued--
		l.engine.limits.waiting.Add(-1)
	}
}

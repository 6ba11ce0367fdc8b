package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// refuseUnserved returns the refusal of new callers for a key if the server of the key has
// not served any command for Config.FailFast. Otherwise it returns nil.
//
// During an outage each caller that waits would wait to the end of its wait, and each caller
// that may not wait would wait for the bound of a command. New callers would come faster
// than earlier ones end. The callers in the queue keep their places, and leases pass within
// the process as before.
func (e *Engine) refuseUnserved(key string) *Refusal {
	if e.failFast == 0 {
		return nil
	}
	since, why := e.store.Unserved(key)
	if since.IsZero() {
		return nil
	}
	lasts := time.Since(since)
	if lasts < e.failFast {
		return nil
	}
	return &Refusal{Reason: Unavailable, Fault: &store.Fault{
		Temporary: true,
		Outage:    true,
		Err:       fmt.Errorf("no command was served for %v, the last one failed with: %w", lasts.Round(100*time.Millisecond), why),
	}}
}

// needsStore reports whether a new caller gets nothing from the key's queues without a
// command: no lease that could pass to it, and no refusal. An attempt always needs the store.
// A nil queue has nothing.
func (q *queue) needsStore(w *waiter) bool {
	switch {
	case q == nil:
		return true
	case w.hold.request.Limit.IsShared():
		return q.sharedList(w.hold.request.Limit).needsStore(w)
	case isMismatch(q.running, w.hold.request.Attempt), q.hasHolder() && w.nowait:
		return false
	default:
		return !q.hasHolder() || !q.lease.passesWithoutStore(w.hold.request)
	}
}

// needsStore is that of a queue, for a shared caller. A nil list has nothing.
func (l *waitlist) needsStore(w *waiter) bool {
	switch {
	case l == nil:
		return true
	case w.nowait:
		return !l.isBusy()
	default:
		return !slices.ContainsFunc(l.queues, func(q *queue) bool {
			return q.hasHolder() && q.lease.passesWithoutStore(w.hold.request)
		})
	}
}

// hasHolder reports whether a caller of this process holds the lease, or is about to.
func (q *queue) hasHolder() bool { return q.state == held || q.state == passing }

// passesWithoutStore reports whether the lease could pass to the request in an outage. A
// lease that was extended, or whose key stays locked, does not pass, and neither does one
// that has to be renewed for the request.
func (l *lease) passesWithoutStore(r Request) bool {
	keeps := l.holder != nil && l.holder.request.MinHold > 0
	return r.Attempt == nil && l.attempt == nil && !l.extended && !keeps && l.suits(r, time.Now())
}

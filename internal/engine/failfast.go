package engine

import (
	"fmt"
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
		Err:       fmt.Errorf("no command was served for %v, the last one failed with: %w", lasts.Round(100*time.Millisecond), why),
	}}
}

// needsStore reports whether a new caller gets nothing from the queue without a command: no
// lease that could pass to it, and no refusal. An attempt always needs the store. A nil
// queue has nothing. A lease that was extended, or whose key stays locked, does not pass, and
// neither does one that has to be renewed for the caller.
func (q *queue) needsStore(w *waiter) bool {
	if q == nil {
		return true
	}
	attempt, hasHolder := w.hold.request.Attempt, q.state == held || q.state == passing
	switch {
	case isMismatch(q.running, attempt), hasHolder && w.nowait:
		return false
	case hasHolder:
		keeps := q.lease.holder != nil && q.lease.holder.request.MinHold > 0
		return attempt != nil || q.lease.attempt != nil || q.lease.extended || keeps || !q.lease.suits(w.hold.request, time.Now())
	default:
		return true
	}
}

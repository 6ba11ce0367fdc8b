package engine

import (
	"context"
	"fmt"
	"time"
)

// held returns a Closing event for the leases that have a holder. The event has the number
// of the holders, and the key, the age and the caller of the oldest one.
func (e *Engine) held() Event {
	event, now := Event{Kind: Closing}, time.Now()
	e.eachHeld(func(q *queue) {
		h := q.lease.holder
		if h.request.Key == searchKey { // Close ends it
			return
		}
		event.Holds++
		if age := now.Sub(h.since); event.Key == "" || age > event.Held {
			event = event.of(h)
			event.Held, event.Origin = age, h.request.Caller
		}
	})
	return event
}

// unfinished returns the error of a Close that ended before its holders.
func (e *Engine) unfinished(ended error) error {
	h := e.held()
	if open := e.open.count.Load(); h.Holds == 0 && open > 0 {
		return fmt.Errorf("%w: no lease is held, and redis has not accepted the answers of this many idempotent requests: %d", ended, open)
	}
	if h.Holds == 0 {
		return fmt.Errorf("%w: no lease is held, and commands to redis are under way", ended)
	}
	caller := ""
	if h.Origin != "" {
		caller = ", by " + h.Origin
	}
	return fmt.Errorf("%w: leases that are not released: %d; the oldest is held since %s, for %v%s",
		ended, h.Holds, time.Now().Add(-h.Held).UTC().Format(time.RFC3339), h.Held.Round(time.Millisecond), caller)
}

// AttemptContexts returns the contexts that were given to Acquire for the attempts that hold
// their leases. It calls none of them, because they may be any contexts and it has the mutexes.
func (e *Engine) AttemptContexts() []context.Context {
	var contexts []context.Context
	e.eachHeld(func(q *queue) {
		if h := q.lease.holder; h.request.Attempt != nil {
			contexts = append(contexts, h.acquireCtx)
		}
	})
	return contexts
}

// eachHeld calls f with each queue whose lease has a holder.
func (e *Engine) eachHeld(f func(*queue)) {
	visit := func(q *queue) {
		if q.lease != nil && q.lease.holder != nil {
			f(q)
		}
	}
	e.eachShard(func(s *shard) {
		for _, root := range s.queues {
			visit(root)
			for _, l := range root.shared.lists { // as allQueues, without an allocation for each key
				for _, q := range l.queues {
					visit(q)
				}
			}
		}
	})
}

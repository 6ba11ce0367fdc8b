package engine

import (
	"context"

	"github.com/reqlock/reqlock/internal/store"
)

// Resolve deletes the record of a key after its attempt died. It reports whether an attempt
// runs, and then leaves the record alone. An attempt runs if the store finds its token
// in the key, or if it runs in this engine, even after the loss of its lease. The error is a
// *Refusal.
func (e *Engine) Resolve(ctx context.Context, key string) (running bool, err error) {
	if !e.addWork() {
		return false, &Refusal{Reason: ClosedDown}
	}
	if e.runsLost(key) {
		e.work.Done()
		return true, nil
	}
	type result struct {
		running bool
		err     error
	}
	answered := make(chan result, 1)
	e.store.Resolve(store.ResolveRequest{Key: key, Bound: e.bound}, func(running bool, err error) {
		defer e.work.Done()
		answered <- result{running, err}
	})
	select {
	case r := <-answered:
		if r.err != nil {
			return false, &Refusal{Reason: Unavailable, Fault: store.FaultOf(r.err)}
		}
		return r.running, nil
	case <-ctx.Done():
		return false, (&Refusal{Reason: Unavailable}).endedBy(ctx)
	}
}

// runsLost reports whether an attempt of this process runs after the loss of its lease.
// To the store it looks like one that died.
func (e *Engine) runsLost(key string) bool {
	s := e.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[key]; q != nil {
		for _, attempt := range q.lostTokens {
			if attempt != nil {
				return true
			}
		}
	}
	return false
}

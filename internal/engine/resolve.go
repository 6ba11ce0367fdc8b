package engine

import (
	"context"

	"github.com/reqlock/reqlock/internal/store"
)

// The requests and results of Resolve and Outcome are those of a store, for the owner of the
// engine.
type (
	// A ResolveRequest is store.ResolveRequest.
	ResolveRequest = store.ResolveRequest
	// A ResolveStatus is store.ResolveStatus.
	ResolveStatus = store.ResolveStatus
	// An Outcome is store.Outcome.
	Outcome = store.Outcome
)

// The resolutions, the results of a Resolve, and the states of an Outcome.
const (
	ResolveNotDone  = store.ResolveNotDone
	ResolveDone     = store.ResolveDone
	ResolveAnswered = store.ResolveAnswered

	NoRecord     = store.NoRecord
	Resolved     = store.Resolved
	StillRunning = store.StillRunning
	Changed      = store.Changed

	Absent      = store.Absent
	Damaged     = store.Damaged
	Running     = store.Running
	Unknown     = store.Unknown
	WasDone     = store.WasDone
	WasAnswered = store.WasAnswered
)

// Resolve ends an attempt that died, as an operator says: see store.Store. The engine sets
// the bound of the request. The status is StillRunning also while an attempt of this engine
// runs or ends after the loss of its lease: the store has no information about that. The error
// is a *Refusal.
func (e *Engine) Resolve(ctx context.Context, r ResolveRequest) (ResolveStatus, error) {
	r.Bound = e.bound
	return askOnce(ctx, e, func(done func(ResolveStatus, error)) {
		if e.runsAttempt(r.Key) {
			done(StillRunning, nil)
			return
		}
		e.store.Resolve(r, func(status ResolveStatus, err error) {
			if err == nil && status == Resolved {
				e.endResolved(r.Key)
			}
			done(status, err)
		})
	})
}

// Outcome reads what became of the request of a key. The error is a *Refusal.
func (e *Engine) Outcome(ctx context.Context, key string) (Outcome, error) {
	outcome, err := askOnce(ctx, e, func(done func(Outcome, error)) {
		e.store.Outcome(store.OutcomeRequest{Key: key, Bound: e.bound}, done)
	})
	if outcome.State == Unknown && e.runsAttempt(key) {
		outcome.State = Running
	}
	return outcome, err
}

// askOnce sends one transition for which no queue is needed, and waits for its result. Close
// waits for the transition.
func askOnce[T any](ctx context.Context, e *Engine, send func(done func(T, error))) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if !e.addWork() {
		return none, &Refusal{Reason: ClosedDown}
	}
	answered := make(chan result, 1)
	send(func(value T, err error) {
		defer e.work.Done()
		answered <- result{value, err}
	})
	select {
	case r := <-answered:
		if r.err != nil {
			return none, &Refusal{Reason: Unavailable, Fault: store.FaultOf(r.err)}
		}
		return r.value, nil
	case <-ctx.Done():
		return none, (&Refusal{Reason: Unavailable}).endedBy(ctx)
	}
}

// runsAttempt reports whether an attempt of this process runs after the loss of its lease, or is
// being ended: its key may have expired meanwhile. To the store it looks like one that died.
func (e *Engine) runsAttempt(key string) bool {
	s := e.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[key]
	return q != nil && (q.runsLost() || q.state == releasing && q.lease.attempt != nil)
}

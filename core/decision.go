package core

// A Decision is what a handler knows of its own attempt that its answer does not
// tell.
type Decision int32

// The decisions.
const (
	// Undecided leaves it to the status of the answer.
	Undecided Decision = iota
	// StoreAnswer keeps the answer, whatever its status is: later requests with
	// the key get it too.
	StoreAnswer
	// DropAnswer does not keep the answer, whatever its status is: the next
	// request with the key runs.
	DropAnswer
	// Uncertain says that nobody knows whether the request took effect, as after
	// a call to another service that timed out. Later requests with the key are
	// treated as WithInterrupted says.
	Uncertain
)

// Decide tells the middleware under which a handler runs what is to become of its
// attempt:
//
//	if attempt, ok := core.AttemptFromContext(ctx); ok {
//		attempt.Decide(core.Uncertain)
//	}
//
// The last call before the handler returns counts. On a nil Attempt, Decide does
// nothing.
//
// The decision also counts if the handler panics or ends its goroutine:
//
//   - DropAnswer frees the key, and the next request runs.
//   - Uncertain and StoreAnswer leave the outcome unknown. Part of the answer that
//     was to be stored may be missing, so no answer is stored.
//   - Undecided frees the key. Exception: over HTTP, a handler that has already
//     written a status which is stored may have taken effect, so the outcome is
//     unknown.
func (a *Attempt) Decide(d Decision) {
	for a != nil && a.outer != nil {
		a = a.outer
	}
	if a != nil {
		a.decision.Store(int32(d))
	}
}

// Decision returns what the handler has decided, Undecided if nothing.
func (a *Attempt) Decision() Decision {
	for a != nil && a.outer != nil {
		a = a.outer
	}
	if a == nil {
		return Undecided
	}
	return Decision(a.decision.Load())
}

package core

// A Decision says how the attempt of a handler ends, if the answer does not show it. A
// decision comes before the adapter's options WithUncertain and WithStored, which decide by
// the answer.
type Decision int32

// The decisions.
const (
	// Undecided lets WithUncertain and then WithStored decide, by the status of the answer.
	Undecided Decision = iota
	// StoreAnswer stores the answer, whatever its status is. Later requests with the key
	// get the same answer.
	StoreAnswer
	// DropAnswer does not store the answer, whatever its status is. The next request with
	// the key runs.
	DropAnswer
	// Uncertain says that it is unknown whether the request took effect, as after a call
	// to another service that timed out. WithInterrupted says what later requests with
	// the key get.
	Uncertain
)

// Decide tells the middleware how to end the attempt of the handler:
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
//   - Undecided leaves the outcome unknown. Exception: WithUncertain or FreeOnFailure
//     says otherwise. Then the key is free, unless the handler had already written a
//     status that is stored: such a handler may have taken effect.
func (a *Attempt) Decide(d Decision) {
	for a != nil && a.outer != nil {
		a = a.outer
	}
	if a != nil {
		a.decision.Store(int32(d))
	}
}

// Decision returns the handler's decision, or Undecided if there is none.
func (a *Attempt) Decision() Decision {
	for a != nil && a.outer != nil {
		a = a.outer
	}
	if a == nil {
		return Undecided
	}
	return Decision(a.decision.Load())
}

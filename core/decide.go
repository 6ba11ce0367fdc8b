package core

// Decide tells the middleware how to end the attempt of the handler:
//
//	if attempt, ok := core.AttemptFromContext(ctx); ok {
//		attempt.Decide(core.EndUnknown)
//	}
//
// The last call before the handler returns counts. It takes precedence over WithUnknown and
// WithStored. Exception: once EndUnknown was decided, or another ending than EndAbort followed
// an EndNoEffect, the request may have taken effect. Then a later EndNoEffect counts as
// EndUndecided. So it does in a handler that a middleware runs again. On a nil Attempt, Decide
// does nothing.
//
// The decision also counts if the handler panics or ends its goroutine:
//
//   - EndAbort frees the key, and the next request runs. So does EndNoEffect, unless the
//     handler had already written a status that is stored, or sent a part of its answer.
//   - EndUnknown, EndCommit and EndDone leave the outcome unknown. Part of the answer that
//     was to be stored may be missing, and part of the work undone.
//   - EndUndecided leaves the outcome unknown. Exception: WithUnknown or WithFreeOnFailure
//     says otherwise. Then the key is free, unless the handler had already written a
//     status that is stored: such a handler may have taken effect.
func (a *Attempt) Decide(e Ending) {
	for a != nil && a.outer != nil {
		a = a.outer
	}
	if a == nil {
		return
	}
	for {
		old := a.decision.Load()
		marks := old & (saidNoEffect | effectBegun)
		switch {
		case e == EndUnknown, marks&saidNoEffect != 0 && e != EndNoEffect && e != EndAbort:
			marks |= effectBegun
		case e == EndNoEffect:
			marks |= saidNoEffect
		}
		next := e
		if marks&effectBegun != 0 && e == EndNoEffect {
			next = EndUndecided
		}
		if a.decision.CompareAndSwap(old, int32(next)|marks) {
			return
		}
	}
}

// Marks beside an attempt's decision.
const (
	saidNoEffect = 1 << 8 // EndNoEffect was decided
	effectBegun  = 1 << 9 // another decision came after it that says more than that, or EndUnknown
)

// decided returns the handler's decision, or EndUndecided if there is none.
func (a *Attempt) decided() Ending {
	for a != nil && a.outer != nil {
		a = a.outer
	}
	if a == nil {
		return EndUndecided
	}
	return Ending(a.decision.Load() &^ (saidNoEffect | effectBegun))
}

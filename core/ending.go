package core

// An Ending says how the attempt at an idempotent request ends: the methods of Attempt end it so,
// Attempt.Decide chooses it, and Event.Ending reports it.
type Ending int32

// The endings.
const (
	// EndUndecided lets WithUnknown and then WithStored choose, by the status of the answer. In an
	// Event there is no ending.
	EndUndecided Ending = iota
	// EndCommit: the request is done, and its answer is stored, whatever its status is. Later
	// requests with the key get the same answer. With WithoutAnswer it is EndDone.
	EndCommit
	// EndDone: the request is done, without an answer. Later requests with the key do not run, and
	// get ErrUnreplayable.
	EndDone
	// EndAbort: it is as if the request had not begun. The next request with the key runs.
	EndAbort
	// EndUnknown: it is unknown whether the request took effect, as after a call to another service
	// that timed out. WithRerunUnknown says what later requests with the key get.
	EndUnknown
	// EndNoEffect is for Decide alone. It says that nothing has taken effect so far, in any handler
	// or try of the request: where the ending would be EndUnknown, as after a 500 or a panic, it is
	// EndAbort. Just before its first effect, the handler decides EndUndecided. An answer that is
	// stored is stored nevertheless, and an answer that was begun to be sent, or has a status that
	// is stored before a panic, counts as if EndNoEffect had not been decided: so a handler that
	// forgets EndUndecided does not take effect twice. If the process dies, the outcome is unknown
	// whatever was decided.
	EndNoEffect
)

// String returns the ending as one lower-case word.
func (e Ending) String() string {
	switch e {
	case EndUndecided:
		return "undecided"
	case EndCommit:
		return "commit"
	case EndDone:
		return "done"
	case EndAbort:
		return "abort"
	case EndUnknown:
		return "unknown"
	case EndNoEffect:
		return "no_effect"
	default:
		return "invalid"
	}
}

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

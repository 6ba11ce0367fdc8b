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
	// NoEffect says that nothing has taken effect so far, in any handler or try of the
	// request. Where the outcome would be
	// unknown otherwise, as after a 500 or a panic, the next request with the key runs.
	// Just before its first effect, the handler decides Undecided. An answer that is stored
	// is stored nevertheless, and an answer that was begun to be sent, or has a status that
	// is stored before a panic, counts as if NoEffect had not been decided: so a handler
	// that forgets Undecided does not take effect twice. If the process dies, the outcome
	// is unknown whatever was decided.
	NoEffect
)

// Decide tells the middleware how to end the attempt of the handler:
//
//	if attempt, ok := core.AttemptFromContext(ctx); ok {
//		attempt.Decide(core.Uncertain)
//	}
//
// The last call before the handler returns counts. Exception: after Uncertain, and after Undecided
// or StoreAnswer that came behind a NoEffect, the request may have taken effect, and a NoEffect
// counts as Undecided, as in a handler that a middleware runs again. On a nil Attempt, Decide does
// nothing.
//
// The decision also counts if the handler panics or ends its goroutine:
//
//   - DropAnswer frees the key, and the next request runs. So does NoEffect, unless the
//     handler had already written a status that is stored, or sent a part of its answer.
//   - Uncertain and StoreAnswer leave the outcome unknown. Part of the answer that
//     was to be stored may be missing, so no answer is stored.
//   - Undecided leaves the outcome unknown. Exception: WithUncertain or FreeOnFailure
//     says otherwise. Then the key is free, unless the handler had already written a
//     status that is stored: such a handler may have taken effect.
func (a *Attempt) Decide(d Decision) {
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
		case d == Uncertain, marks&saidNoEffect != 0 && d != NoEffect && d != DropAnswer:
			marks |= effectBegun
		case d == NoEffect:
			marks |= saidNoEffect
		}
		next := d
		if marks&effectBegun != 0 && d == NoEffect {
			next = Undecided
		}
		if a.decision.CompareAndSwap(old, int32(next)|marks) {
			return
		}
	}
}

// Marks beside an attempt's decision.
const (
	saidNoEffect = 1 << 8 // NoEffect was decided
	effectBegun  = 1 << 9 // another decision came after it that says more than that, or Uncertain
)

// Decision returns the handler's decision, or Undecided if there is none.
func (a *Attempt) Decision() Decision {
	for a != nil && a.outer != nil {
		a = a.outer
	}
	if a == nil {
		return Undecided
	}
	return Decision(a.decision.Load() &^ (saidNoEffect | effectBegun))
}

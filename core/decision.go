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
// The last call before the handler returns counts. After a panic only Uncertain
// does: else the attempt is aborted. On a nil Attempt, Decide does nothing.
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

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

package history

import "github.com/reqlock/reqlock/tests/internal/history"

type (
	// Kind is what was called.
	Kind = history.Kind
	// Outcome is what became of it.
	Outcome = history.Outcome
	// Op is a call with its result.
	Op = history.Op
	// Policy is that for attempts that died.
	Policy = history.Policy
	// Effect is one of a handler.
	Effect = history.Effect
	// ProcessFailure is a process that was killed or paused.
	ProcessFailure = history.ProcessFailure
)

// The kinds of calls, their outcomes, and the limits and policies of their requests.
const (
	Lock     = history.Lock
	Try      = history.Try
	Extend   = history.Extend
	Release  = history.Release
	LeaseEnd = history.LeaseEnd
	Begin    = history.Begin
	Commit   = history.Commit
	Seal     = history.Seal
	Abort    = history.Abort

	None         = history.None
	Granted      = history.Granted
	Replayed     = history.Replayed
	Busy         = history.Busy
	WaitTimeout  = history.WaitTimeout
	Unavailable  = history.Unavailable
	Deadline     = history.Deadline
	Lost         = history.Lost
	Interrupted  = history.Interrupted
	Unreplayable = history.Unreplayable
	Mismatch     = history.Mismatch
	Done         = history.Done
	Failed       = history.Failed

	Unlimited = history.Unlimited
	Reject    = history.Reject
	Rerun     = history.Rerun
)

// An Access is an access to the register.
type Access struct {
	At        int64  `json:"at"`
	Process   int    `json:"process"`
	Client    int    `json:"client"`
	Key       string `json:"key"`
	Fenced    bool   `json:"fenced"`
	Write     bool   `json:"write"`
	Fence     int64  `json:"fence"`
	CheckedAt int64  `json:"checked_at,omitempty"`
	Version   int64  `json:"version"`
	Refused   bool   `json:"refused,omitempty"`
}

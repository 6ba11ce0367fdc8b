// Package history is the record of what callers of a lock saw, and its checks.
//
// An [Op] is one call, with what it returned. Package tests/faults records more fields of it than
// the other tests. A [Recorder] records the calls of one process;
// processes that are killed record to memory that outlives them, as in tests/waiting. [Holds] are
// the turns of the callers, which follow from the calls. Each check returns one line for each
// violation. All times are readings of package clock, which all processes of a host share; 0 is
// never.
package history

import (
	"context"
	"errors"

	"github.com/reqlock/reqlock/core"
)

// A Kind is the kind of a call.
type Kind string

// The kinds of calls.
const (
	Lock     Kind = "lock"      // waits for the key, at most for Wait
	Try      Kind = "try"       // does not wait
	Extend   Kind = "extend"    // renews the lease once, by a call of the caller
	Release  Kind = "release"   // ends a lease
	LeaseEnd Kind = "lease_end" // not a call: the lease's context has ended, at Call
	Begin    Kind = "begin"     // of an attempt: an idempotent request
	Commit   Kind = "commit"    // ends an attempt as done, with an answer
	Seal     Kind = "seal"      // ends an attempt as done, with an answer that is not kept
	Abort    Kind = "abort"     // ends an attempt as if it had not begun
	Forget   Kind = "forget"    // by an operator: the request may run as if it were new
)

// An Outcome is what a call returned.
type Outcome string

// The outcomes. A call that has not returned has None.
const (
	None         Outcome = ""
	Granted      Outcome = "granted"  // a Lock, a Try, and a Begin whose attempt must run
	Replayed     Outcome = "replayed" // a Begin that returned the answer of another attempt
	Busy         Outcome = "busy"     // ErrBusy without a wait
	WaitTimeout  Outcome = "wait_timeout"
	Unavailable  Outcome = "unavailable" // Redis did not answer: the effect is unknown
	Deadline     Outcome = "deadline"    // the caller's context ended
	Lost         Outcome = "lost"        // ErrLost
	Interrupted  Outcome = "interrupted" // ErrOutcomeUnknown
	Unreplayable Outcome = "unreplayable"
	Mismatch     Outcome = "mismatch" // ErrMismatch
	Done         Outcome = "done"     // an Extend, Release, Commit, Seal or Abort that returned nil
	Failed       Outcome = "failed"
)

// OutcomeOf returns the outcome of a call that returned this error, and success without an error.
func OutcomeOf(err error, success Outcome) Outcome {
	switch {
	case err == nil:
		return success
	case errors.Is(err, core.ErrOutcomeUnknown):
		return Interrupted
	case errors.Is(err, core.ErrMismatch):
		return Mismatch
	case errors.Is(err, core.ErrLost):
		return Lost
	case errors.Is(err, core.ErrClosed):
		return Failed
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Deadline
	case errors.Is(err, core.ErrWaitTimeout):
		return WaitTimeout
	case errors.Is(err, core.ErrBusy):
		return Busy
	case errors.Is(err, core.ErrUnavailable):
		return Unavailable
	}
	return Failed
}

// An Op is one call of one caller.
type Op struct {
	Process int    `json:"process"`
	Client  int    `json:"client"`         // the caller within its process
	Name    string `json:"name,omitempty"` // names the caller in violations
	Kind    Kind   `json:"kind"`
	Key     string `json:"key"`
	Call    int64  `json:"call"`
	Return  int64  `json:"return,omitempty"` // 0 if it has not returned

	Outcome Outcome `json:"outcome,omitempty"`
	Error   string  `json:"error,omitempty"`
	Wait    int64   `json:"wait,omitempty"` // how long it may wait, in ns; 0 for ever
	// Limit is how many shared leases of the key there may be beside each other, the one of this
	// Lock included, or Unlimited; 0 for an exclusive lease.
	Limit int `json:"limit,omitempty"`

	// Lease names the lease that the call was granted, or that the call is about. Leases that
	// are passed on within a process share one Episode, which their token names.
	Lease    string `json:"lease,omitempty"`
	Episode  string `json:"episode,omitempty"`
	Fence    int64  `json:"fence,omitempty"`
	Unfenced bool   `json:"unfenced,omitempty"` // the lease has no fence, and fences are not checked
	// ValidUntil is the validity of the lease when the call returned, and the last validity if the
	// call ends the lease. Unrenewed is set in a Lock whose lease is not renewed. MinHold is for how
	// long the key stays locked from the grant, at least, in ns, even if it is released before.
	ValidUntil int64 `json:"valid_until,omitempty"`
	Unrenewed  bool  `json:"unrenewed,omitempty"`
	MinHold    int64 `json:"min_hold,omitempty"`
	// ReliedUntil is until when the caller relied on the lease that a Release ends: the earliest
	// of the call, the end of the lease's context and the end of its validity.
	ReliedUntil int64 `json:"relied_until,omitempty"`

	// Number is that of an attempt. Record is what a Commit stored, or what a Begin returned. Policy
	// and Other are set in a Begin: Other if its payload differs from that of all others with its key.
	Number int    `json:"number,omitempty"`
	Record string `json:"record,omitempty"`
	Policy Policy `json:"policy,omitempty"`
	Other  bool   `json:"other,omitempty"`
}

// Unlimited is the Limit of a shared lease without a limit.
const Unlimited = -1

// IsShared reports whether the call asks for a shared lease.
func (o *Op) IsShared() bool { return o.Limit != 0 }

// A Policy says what happens to a request after its attempt has died.
type Policy string

// The policies.
const (
	Reject Policy = "reject" // no attempt runs again: Begin is Interrupted
	Rerun  Policy = "rerun"  // the next attempt runs, with a higher Number
)

// An Effect is a side effect of a handler, such as a charge.
type Effect struct {
	At      int64  `json:"at"`
	Process int    `json:"process"`
	Client  int    `json:"client"`
	ID      string `json:"id,omitempty"`
	Key     string `json:"key"`
	Request string `json:"request,omitempty"` // names the request, if several have one key
	Number  int    `json:"number"`            // of the attempt
	Lease   string `json:"lease"`             // the token of the attempt, which is unique
}

// A ProcessFailure is a process that was killed or paused.
type ProcessFailure struct {
	Process int   `json:"process"`
	From    int64 `json:"from"`
	To      int64 `json:"to,omitempty"` // when it continued; 0 if it was killed
}

// A History is the record of one run.
type History struct {
	Ops             []Op             `json:"ops"`
	Effects         []Effect         `json:"effects,omitempty"`
	ProcessFailures []ProcessFailure `json:"process_failures,omitempty"`
}

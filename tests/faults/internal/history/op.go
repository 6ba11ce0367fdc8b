package history

// A Kind is the kind of a call.
type Kind string

// The kinds of calls.
const (
	Lock     Kind = "lock"      // waits for the key, at most for Wait
	Try      Kind = "try"       // does not wait
	Extend   Kind = "extend"    // renews the lease once, by a call of the client
	Release  Kind = "release"   // ends the lease
	LeaseEnd Kind = "lease_end" // not a call: the lease's context has ended, at Call
	Begin    Kind = "begin"     // of an attempt: an idempotent request
	Commit   Kind = "commit"    // ends it as done, with an answer that is not stored
	Seal     Kind = "seal"      // ends it as done, with an answer that is not kept
	Abort    Kind = "abort"     // ends it as if it had not begun
)

// An Outcome is what a call returned.
type Outcome string

// The outcomes. A call whose process died before it returned has None.
const (
	None         Outcome = ""
	Granted      Outcome = "granted"  // Lock, Try, and a Begin whose attempt must run
	Replayed     Outcome = "replayed" // a Begin that returned the answer of another attempt
	Busy         Outcome = "busy"     // ErrBusy without a wait
	WaitTimeout  Outcome = "wait_timeout"
	Unavailable  Outcome = "unavailable" // Redis did not answer: the effect is unknown
	Deadline     Outcome = "deadline"    // the caller's context ended
	Lost         Outcome = "lost"        // ErrLost
	Interrupted  Outcome = "interrupted" // ErrInterrupted
	Unreplayable Outcome = "unreplayable"
	Mismatch     Outcome = "mismatch" // ErrMismatch
	Done         Outcome = "done"     // Extend, Release, Commit, Seal and Abort returned nil
	Failed       Outcome = "failed"
)

// An Op is one call of one client.
type Op struct {
	Process int   `json:"process"` // the number of its process, which is unique
	Client  int   `json:"client"`  // unique among all processes; a later process may take over the clients of a dead one
	Kind    Kind  `json:"kind"`
	Call    int64 `json:"call"`
	Return  int64 `json:"return,omitempty"` // 0 if its process died, or if it still waits

	Key     string  `json:"key"`
	Outcome Outcome `json:"outcome,omitempty"`
	Error   string  `json:"error,omitempty"`
	Wait    int64   `json:"wait,omitempty"` // how long it may wait, in ns; 0 for ever
	// Limit is set in a Lock or a Try of a shared lease: it is granted while fewer shared
	// leases of the key are out, or, if it is Unlimited, beside any number of them. It is 0
	// for an exclusive lease.
	Limit int `json:"limit,omitempty"`

	// Lease names the lease that the call was granted, or that it is about. Leases that are
	// handed off within a process share one Episode.
	Lease   string `json:"lease,omitempty"`
	Episode string `json:"episode,omitempty"` // a digest of the token
	Fence   int64  `json:"fence,omitempty"`
	// ValidUntil is the validity of the lease when the call returned. In a Release, a
	// Commit, a Seal, an Abort and a LeaseEnd it is the last validity.
	ValidUntil int64 `json:"valid_until,omitempty"`
	// Unrenewed is set in a Lock if its lease is not renewed.
	Unrenewed bool `json:"unrenewed,omitempty"`
	// MinHold is set in a Lock or a Try: for how long the key stays locked from the grant, at
	// least, in ns, even if its holder releases it before; 0 if it does not.
	MinHold int64 `json:"min_hold,omitempty"`
	// ReliedUntil is set in a Release, a Commit, a Seal and an Abort. It is the time until
	// which the client relied on the lease: the earliest of the call, the end of the
	// lease's context and ValidUntil.
	ReliedUntil int64 `json:"relied_until,omitempty"`

	// Number, Record and Policy belong to an attempt. Record is what a Commit stored, or
	// what a Replayed Begin returned. Policy is set in a Begin.
	Number int    `json:"number,omitempty"`
	Record string `json:"record,omitempty"`
	Policy Policy `json:"policy,omitempty"`
	// Other is set in a Begin whose payload differs from that of all other calls with its
	// key.
	Other bool `json:"other,omitempty"`
}

// Unlimited is the Limit of a shared lease without a limit, as a reader takes it.
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

// An Access is one access to the resource under the lock, in the order in which the
// resource executed them. Each key has two registers: a fenced one, which checks fencing
// numbers, and an unfenced one. The version of a register is the number of accepted writes.
type Access struct {
	At      int64  `json:"at"`
	Process int    `json:"process"`
	Client  int    `json:"client"`
	Key     string `json:"key"`
	Fenced  bool   `json:"fenced"`
	Write   bool   `json:"write"`
	Fence   int64  `json:"fence"`
	// CheckedAt is set in a write, and in the second read under a shared lease: the time at
	// which the client last saw that its lease was valid; 0 if it did not check.
	CheckedAt int64 `json:"checked_at,omitempty"`
	// Version is the version that was read, or that a write is based on.
	Version int64 `json:"version"`
	// Refused is set if the fenced register had seen a higher fencing number.
	Refused bool `json:"refused,omitempty"`
}

// An Effect is the side effect of an attempt: a charge.
type Effect struct {
	At      int64  `json:"at"`
	Process int    `json:"process"`
	Client  int    `json:"client"`
	Key     string `json:"key"`
	Number  int    `json:"number"`
	Lease   string `json:"lease"`
}

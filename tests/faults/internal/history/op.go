package history

// A Kind is what a client called.
type Kind string

// The kinds of call.
const (
	Lock     Kind = "lock"      // waits for the key, for as long as Wait says
	Try      Kind = "try"       // does not wait
	Extend   Kind = "extend"    // renews the lease once, by hand
	Release  Kind = "release"   // ends the lease
	LeaseEnd Kind = "lease_end" // not a call: the lease's context has ended, at Call
	Begin    Kind = "begin"     // of an attempt: an idempotent request
	Commit   Kind = "commit"    // ends it with an answer
	Seal     Kind = "seal"      // ends it as done, with an answer that is not kept
	Abort    Kind = "abort"     // ends it as if it had not begun
)

// An Outcome is what a client heard of its call.
type Outcome string

// The outcomes. What was never heard, because the process died, is None.
const (
	None         Outcome = ""
	Granted      Outcome = "granted"  // Lock, Try, and a Begin that is to run
	Replayed     Outcome = "replayed" // a Begin that got the answer of another attempt
	Busy         Outcome = "busy"     // ErrBusy, and not after a wait
	WaitTimeout  Outcome = "wait_timeout"
	Unavailable  Outcome = "unavailable" // Redis could not be asked: the effect is not known
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
	Process int   `json:"process"` // its number is never used again
	Client  int   `json:"client"`  // of all processes; numbers are reused by later processes
	Kind    Kind  `json:"kind"`
	Call    int64 `json:"call"`
	Return  int64 `json:"return,omitempty"` // 0 where its process died, or still waits

	Key     string  `json:"key"`
	Outcome Outcome `json:"outcome,omitempty"`
	Error   string  `json:"error,omitempty"`
	Wait    int64   `json:"wait,omitempty"` // how long it may wait, in ns; 0 for ever

	// Lease names the lease that the call was granted, or is of. Leases that
	// were passed on within a process are several, of one Episode.
	Lease   string `json:"lease,omitempty"`
	Episode string `json:"episode,omitempty"` // names the token, without telling it
	Fence   int64  `json:"fence,omitempty"`
	// ValidUntil is what the lease said when the call returned; of a Release, a
	// Commit, a Seal, an Abort and a Told, what it said last.
	ValidUntil int64 `json:"valid_until,omitempty"`
	// Unrenewed, of a Lock, says that its lease is not renewed and ends when its
	// validity does.
	Unrenewed bool `json:"unrenewed,omitempty"`
	// Believed, of a Release, a Commit, a Seal or an Abort, is until when the client
	// relied on the lease: the earliest of its call, the end of the lease's
	// context and ValidUntil.
	ReliedUntil int64 `json:"relied_until,omitempty"`

	// Number, Record and Policy are those of an attempt: Record is what a Commit
	// was given, and what a Replayed Begin got; Policy is of a Begin.
	Number int    `json:"number,omitempty"`
	Record string `json:"record,omitempty"`
	Policy Policy `json:"policy,omitempty"`
	// Other, of a Begin, says that it came with another payload than all others with
	// its key.
	Other bool `json:"other,omitempty"`
}

// A Policy is what becomes of a request whose attempt has died.
type Policy string

// The policies.
const (
	Reject Policy = "reject" // nobody runs again: Begin is Interrupted
	Rerun  Policy = "rerun"  // the next one runs, and its Number says so
)

// An Access is one use of the resource that the lock guards, in the order in
// which the resource saw it. Each key has two registers, one that looks at fences
// and one that does not. A register counts the writes that it accepted, and that
// is its version: 0 at first.
type Access struct {
	At      int64  `json:"at"`
	Process int    `json:"process"`
	Client  int    `json:"client"`
	Key     string `json:"key"`
	Fenced  bool   `json:"fenced"`
	Write   bool   `json:"write"`
	Fence   int64  `json:"fence"`
	// Looked, of a write, is when the client last saw that its lease was valid, and
	// 0 if it did not look.
	CheckedAt int64 `json:"checked_at,omitempty"`
	// Version is what was read, or on what a write builds.
	Version int64 `json:"version"`
	// Refused is of a fenced register: it has seen a later fence.
	Refused bool `json:"refused,omitempty"`
}

// An Effect is what an attempt did to the world while it ran: a charge.
type Effect struct {
	At      int64  `json:"at"`
	Process int    `json:"process"`
	Client  int    `json:"client"`
	Key     string `json:"key"`
	Number  int    `json:"number"`
	Lease   string `json:"lease"`
}

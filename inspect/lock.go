package inspect

import (
	"slices"
	"time"
)

// A Lock is a lock as it was when it was read.
type Lock struct {
	// Key is the key of the lock. It prints as a digest.
	Key Key
	// Idempotent is true if the lock is that of an idempotent request. Record says what became of it.
	Idempotent bool
	// Shared is true while shared leases are out: of WithPermits or WithShared.
	Shared bool
	// Holders are the leases, at most 1,000. There is more than one only if Shared is true. There is
	// none while processes wait for a lock that nobody has taken yet.
	Holders []Holder
	// Waiting is how many processes wait, with at least one request each. A process that waits for
	// leases of several kinds counts for each kind.
	Waiting int
	// Waiters are the processes in the order of the queue, at most 1,000. Only the method Lock reads them.
	Waiters []Waiter
	// FenceMax is the last fencing number that was reserved. The holder's number is not higher. It is
	// 0 if no number was wanted for a week. Only the method Lock reads it.
	FenceMax int64
	// Processes are the processes among Holders and Waiters that are registered with core.WithInstance,
	// in this order. They were read after the rest. Only the method Lock reads them.
	Processes []Process
}

// Process returns one of the Processes: that of a Holder or a Waiter with this id. It reports false if
// Redis has no record of the process.
func (l Lock) Process(id string) (Process, bool) {
	n := slices.IndexFunc(l.Processes, func(p Process) bool { return p.ID == id })
	if n < 0 {
		return Process{}, false
	}
	return l.Processes[n], true
}

// A Holder is a lease that is out.
type Holder struct {
	// Lease names the lease. Revoke and FreeNow end no other.
	Lease LeaseID
	// Kind says who has the lease.
	Kind HolderKind
	// Process is the id of the process that has the lease, 32 hex digits, or "".
	Process string
	// Permits is the n of WithPermits(n), or 0 for any other lease.
	Permits int
	// LeaseLeft is how long the lease lasts if it is not renewed. It is -1 if the key has no TTL.
	LeaseLeft time.Duration
}

// A Waiter is a process that waits for a lock.
type Waiter struct {
	// Process is the id of the process, or "" if a client of another library is in the queue.
	Process string
	// Shared is true if it waits for a shared lease. Permits is the n of WithPermits(n), or 0.
	Shared  bool
	Permits int
}

// A HolderKind says who has a lease.
type HolderKind int

// The kinds of holders.
const (
	// HolderProcess: a process of reqlock.
	HolderProcess HolderKind = iota + 1
	// HolderRevoked: nobody gets the lease until it would have ended, because Revoke has ended it.
	HolderRevoked
	// HolderMinHold: nobody gets the lease until the time of WithMinHold is over.
	HolderMinHold
	// HolderForeign: a client of another library. It wrote the value, and reqlock does not know it.
	HolderForeign
)

// String returns the kind as one lower-case word.
func (k HolderKind) String() string {
	switch k {
	case HolderProcess:
		return "process"
	case HolderRevoked:
		return "revoked"
	case HolderMinHold:
		return "min_hold"
	case HolderForeign:
		return "foreign"
	default:
		return "invalid"
	}
}

// A LeaseID names a lease. It is a digest, and does not contain the token. Two leases never have the
// same LeaseID, so == compares them. The lease of a foreign client has none.
type LeaseID string

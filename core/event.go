package core

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// An EventKind says what an Event tells of.
type EventKind int

// The kinds of event. More may come.
const (
	// Acquired: a lease was granted.
	Acquired EventKind = iota + 1
	// Waiting: a request stands in line, because another holds its key.
	Waiting
	// Refused: a request did not get its lock; Err says why.
	Refused
	// Released: a holder gave its lease back. Err is set where Redis could not
	// be told: then the key falls by its TTL.
	Released
	// Renewed: a lease was extended, or could not be: Err says why. The next
	// attempt follows until the lease ends.
	Renewed
	// Lost: a lease ended under its holder; Err is the cause of its context.
	Lost
	// HeldLong: a lease has been held for more than three times its TTL. It is
	// told once for each lease.
	HeldLong
	// Replayed: a request got the answer of an attempt that was done before it, or
	// for which it has waited.
	Replayed
	// Committed: an attempt is done, by Commit or Seal. Err is set where its
	// answer could not be stored: ErrUnavailable where Redis did not take it, so
	// that its outcome is unknown to later requests, or ErrLost where another
	// attempt had begun.
	Committed
	// Restored: the record of an attempt had vanished while it ran, evicted or
	// lost in a failover, and was stored anew when it was done. A request that came
	// in between may have run too.
	Restored
	// Unlocked: a request runs without its lock, because Redis is unavailable
	// and WithFailOpen is on.
	Unlocked
	// Warned: Check has found that Redis may lose locks; Err says why, and what to
	// do. There is no Key.
	Warned
)

// String returns the kind as one lower-case word.
func (k EventKind) String() string {
	switch k {
	case Acquired:
		return "acquired"
	case Waiting:
		return "waiting"
	case Refused:
		return "refused"
	case Released:
		return "released"
	case Renewed:
		return "renewed"
	case Lost:
		return "lost"
	case HeldLong:
		return "held_long"
	case Replayed:
		return "replayed"
	case Committed:
		return "committed"
	case Restored:
		return "restored"
	case Unlocked:
		return "unlocked"
	case Warned:
		return "warned"
	default:
		return "unknown"
	}
}

// A Handover says how a lease came to its holder.
type Handover int

// The ways in which a lease comes to its holder.
const (
	// Free: the key was free, and the first command took it.
	Free Handover = iota + 1
	// Awaited: another held the key, and a later command took it.
	Awaited
	// Passed: another holder in this process passed its lease on, without
	// Redis giving up the key in between.
	Passed
	// Handed: another process handed it to this one, and told it.
	Handed
)

// String returns the handover as one lower-case word.
func (h Handover) String() string {
	switch h {
	case Free:
		return "free"
	case Awaited:
		return "awaited"
	case Passed:
		return "passed"
	case Handed:
		return "handed"
	default:
		return "unknown"
	}
}

// An Event is something that happened to a lock or to a request for one.
type Event struct {
	// Kind says what happened.
	Kind EventKind
	// Key is the lock's key; it prints as a digest. That of an Attempt's lock is
	// "i:" and the key of the Attempt.
	Key EventKey
	// Queued is true if the request had been told as Waiting before, in events
	// that end its wait.
	Queued bool
	// Waited is how long the request waited, in Acquired, Refused and Replayed.
	Waited time.Duration
	// Held is how long the holder has had the lease, in Released, Renewed, Lost,
	// HeldLong, Committed and Restored.
	Held time.Duration
	// Handover says how the lease came, in Acquired.
	Handover Handover
	// Err is set as the kinds describe it.
	Err error
}

// An EventKey is the key in an event. It prints, and marshals, as a digest, so
// that keys, which may hold personal data, do not get into logs by chance.
type EventKey struct{ raw string }

// Raw returns the key itself.
func (k EventKey) Raw() string { return k.raw }

// String returns the first 12 hex digits of the key's SHA-256: enough to tell
// the keys of a log apart.
func (k EventKey) String() string {
	sum := sha256.Sum256([]byte(k.raw))
	return hex.EncodeToString(sum[:6])
}

// GoString returns the same as String, for %#v.
func (k EventKey) GoString() string { return k.String() }

// MarshalText returns the same as String.
func (k EventKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

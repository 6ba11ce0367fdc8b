package core

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"
)

// An Event is something that happened to a lock or to a request for one. An observer should
// copy what it needs, and not keep the Event after the call: the Event keeps the memory of the
// request and its context.
type Event struct {
	// Kind says what happened.
	Kind EventKind
	// Key is the key of the lock, and prints as a digest. The key of an Attempt's lock is
	// "i:" and the key of the Attempt.
	Key EventKey
	// Process is the id of the process, or more exactly of the Locker: 32 hex digits. The tokens of
	// its leases in Redis begin with it. It is "" in an event of package inspect.
	Process string
	// Name says what kind of thing is locked, such as "account", for metrics and logs: the
	// name of WithName, or else of the outermost Named around the key, or else the route of a
	// request in an idempotent middleware, such as "POST /payments/{id}" or
	// "/bank.Bank/Transfer". A program has few names, and no name contains text of a client:
	// a request whose route is not known has no name. Exception: in OutcomeUnknown it may
	// have the route that a mux of net/http has found behind the middleware. It is "" if there
	// is none, and in Warned.
	Name string
	// Idempotent is true if the event is about an idempotent request: see Begin.
	Idempotent bool
	// Shared is true if the event is about a shared lease, or about a request for one: see
	// WithPermits and WithShared.
	Shared bool
	// Ending says how the attempt ended, in Released and Committed. It is 0 for a plain lock.
	Ending Ending
	// Queued is true in events that end a wait: there was a Waiting event for the
	// request.
	Queued bool
	// Waited is how long the request waited, in Acquired, Refused and Replayed.
	Waited time.Duration
	// Held is how long the holder has had the lease, in Released, HandedOver, Renewed, Lost,
	// HeldLong, Committed, Restored, OutcomeUnknown and Closing. In OutcomeUnknown it is zero
	// if another process held the lease.
	Held time.Duration
	// Repeated is true if there was an event of the same kind for the same lease before,
	// in HeldLong and Committed. In Renewed, it is true if this renewal and the one before it
	// failed. A counter of leases ignores such events.
	Repeated bool
	// Caller is the code that took the lease, in HeldLong and Closing: see WithCaller. It
	// is "" if WithCaller is off.
	Caller string
	// Holds is how many leases are held, in Closing.
	Holds int
	// Server is the address of the server, in Outage and Recovered. It is a short text if the
	// client chooses the address, as with Sentinel.
	Server string
	// Lasted is how long the outage was, in Recovered: from its first command that failed to the
	// first one that succeeded.
	Lasted time.Duration
	// Refused is how many locks were refused because of the outage, in Recovered. Unlocked is
	// how many were not taken because WithFailOpen is on.
	Refused, Unlocked int
	// Attempt and Number name the attempt whose outcome is unknown, as in Record, in an
	// OutcomeUnknown of a search. Attempt names the attempt that the operator has seen, in
	// OperatorResolved. They are zero in any other event.
	Attempt AttemptID
	Number  int
	// Age is how long ago Redis has served the last command for the record, in whole seconds, in an
	// OutcomeUnknown of a search. Mostly that is the begin or the last renewal of the attempt, so its
	// process died then, or up to a third of the TTL later. If a copy, ReadRecord, an earlier search
	// or a restart of Redis came after that, the process died earlier. Age is 0 if Redis does not say
	// it: the user lacks the right +object|idletime, or maxmemory-policy is an LFU policy.
	Age time.Duration
	// First is the reference that WithReference has noted for the first request with the key: in Replayed,
	// and in the Refused of a copy, that of the attempt because of which the copy does not run. In
	// OutcomeUnknown, and in a Committed with Repeated and a Restored before it, it is that of the attempt
	// itself. It is "" if there is none. It may be a text of a client: quote it where it is printed.
	First string
	// Open is how many unknown outcomes there are, also those that were reported, in Searched.
	Open int
	// Took is how long the search took, in Searched.
	Took time.Duration
	// Grant says how the holder got the lease, in Acquired.
	Grant Grant
	// Change says what an operator has changed, in OperatorResolved, OperatorRevoked and
	// OperatorFreed. It is nil in any other event.
	Change *Change
	// Err is described with each kind.
	Err error

	// ctx is a pointer, so that a printed Event does not show the values of the context.
	ctx *context.Context
}

// Context returns the context of the request: the one that was given to Lock, Do, Enter or
// Begin, with the values of its trace; of an attempt only these values, see WithClientCancel. A
// middleware gives that of its request. For several
// keys, it may be derived from that context. In Closing and Warned it is the context of Close
// and Check, and in Warned about an observer it is that of the event at which the observer
// panicked. In any other Warned, in Searched and in an OutcomeUnknown of a search it
// is the background context. Any other OutcomeUnknown for
// an attempt of another process has the context of the request that found it. A Committed with
// Repeated, and a Restored before it, have the background context.
//
// The context may have ended. Exception: with a Change, it does not end. Do not keep it after the
// call of the observer.
func (e Event) Context() context.Context {
	if e.ctx == nil || *e.ctx == nil {
		return context.Background()
	}
	return *e.ctx
}

// An EventKey is the key in an event. It prints and marshals as a digest, because keys may
// hold personal data, which must not get into logs by accident.
type EventKey struct{ raw string }

// IsEmpty reports whether the event has no key.
func (k EventKey) IsEmpty() bool { return k.raw == "" }

// Raw returns the key itself.
func (k EventKey) Raw() string { return k.raw }

// EndpointKey returns the whole key of an idempotent request, as ReadRecord and Resolve take it, if
// it has the form that the function EndpointKey gives it. Then it is a digest, and may be logged.
// Otherwise ok is false: it is the key of a lock, or the program made the key in another way.
func (k EventKey) EndpointKey() (key string, ok bool) {
	key, ok = strings.CutPrefix(k.raw, attemptMark)
	if digest, err := base64.RawURLEncoding.DecodeString(key); !ok || err != nil || len(digest) != sha256.Size {
		return "", false
	}
	return key, true
}

// String returns the first 12 hex digits of the key's SHA-256. They are enough to
// distinguish the keys in a log.
func (k EventKey) String() string {
	sum := sha256.Sum256([]byte(k.raw))
	return hex.EncodeToString(sum[:6])
}

// GoString returns the same as String, for %#v.
func (k EventKey) GoString() string { return k.String() }

// MarshalText returns the same as String.
func (k EventKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

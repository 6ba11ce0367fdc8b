package store

import "time"

// InlineTime is how long a store may keep the caller of an inline request.
const InlineTime = 50 * time.Millisecond

// A Target is what all transitions of a token have in common.
type Target struct {
	// Key is the lock key as the caller knows it, without a prefix.
	Key string
	// Limit is the limit of the lease, which Token repeats: see NewToken. A shared lease
	// has no Take, no Attempt and no Keep, and stores that vote refuse it.
	Limit Limit
	// Token names one episode: one wait, and the lease that follows. A token is dead once
	// a release of it was sent, and must not be used again.
	Token string
	// TTL is how long a grant or a renewal lets the key live.
	TTL time.Duration
	// Bound is how long the transition may take, with all resends.
	Bound time.Duration
}

// A TakeRequest asks for a key on which no contention is known.
type TakeRequest struct {
	Target
	// Inline allows the store to work on the caller's goroutine, for InlineTime at most,
	// and to call done before the method returns. The caller holds no lock.
	Inline bool
	// WithHolder asks for the holder of a key that is not granted.
	WithHolder bool
}

// An EnqueueRequest asks for a key behind all tokens that wait for it.
type EnqueueRequest struct {
	Target
	// Inline allows the store to work on the caller's goroutine: see TakeRequest.
	Inline bool
	// Claim is how long the key stays with another process to which this transition hands
	// it, until that process confirms the grant.
	Claim time.Duration
	// Join adds the token to the queue if the key is not granted.
	Join bool
	// Apart says that each earlier command of the token has had the reply to its only send. So no
	// Take arrives late, and the token is not both in the key and in the queue. Fresh says besides
	// that no command has added the token to the queue. Either makes the command cheap behind a
	// long queue. An Attempt and a shared lease do not use them.
	Apart, Fresh bool
	// WithHolder asks for the holder of a key that is not granted. A request for a shared lease
	// may be answered without one, unless it joins the queue or wants fencing numbers.
	WithHolder bool
	// Fences is how many fencing numbers to reserve at most; 0 is none.
	Fences int
	// Waiter is the token in the queue, which hints name, if Token is a ballot. A store
	// that votes withdraws a ballot that was not granted, so each request has its own.
	// If Waiter is "", Token itself is in the queue.
	Waiter string
	// Attempt is the idempotent request that the key is for; nil is none. With one, the
	// record of the key decides as well. All requests with one token have the same one.
	Attempt *Attempt
	// Ticket is the token of a ticket: the key is granted only if it holds that token, and then
	// Token replaces it. "" is none. It excludes Join, Waiter, Attempt, shared leases and stores
	// that vote.
	Ticket string
}

// A RenewRequest extends the life of a key that holds the token.
type RenewRequest struct {
	Target
	// Fences is how many fencing numbers to reserve at most; 0 is none.
	Fences int
	// Attempt is the attempt that the key was granted for. Its record is kept alive, too.
	Attempt *Attempt
}

// A ReleaseRequest gives a key back.
type ReleaseRequest struct {
	Target
	// Inline allows the store to work on the caller's goroutine: see TakeRequest.
	Inline bool
	// Claim is how long another process has to confirm the key: see EnqueueRequest.
	Claim time.Duration
	// NoWaiters is true if no token is known to wait for the key.
	NoWaiters bool
	// Apart has the meaning of EnqueueRequest.Apart.
	Apart bool
	// Rejoin is the token of the next episode of this process, which the release adds to
	// the end of the queue in the same step; "" is none. It excludes an Attempt.
	Rejoin string
	// Keep leaves the key locked for this time, in whole milliseconds, with the value of no
	// token, so that no process has it; 0 does not. It excludes Rejoin, Attempt and stores
	// that vote.
	Keep time.Duration
	// Ticket is the value of the key for the time of Keep: the token of a ticket, for which an
	// Enqueue grants the key. The status is Freed or NotHeld. "" is none.
	Ticket string
	// Waiter is the token that leaves the queue if Token is a ballot: see EnqueueRequest.
	Waiter string
	// Attempt is the attempt that the release ends as Ending says, with Record as its
	// answer; nil leaves the record as it is.
	Attempt *Attempt
	Ending  Ending
	Record  []byte
}

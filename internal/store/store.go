package store

import (
	"context"
	"time"
)

// A Request names one transition of one key.
type Request struct {
	// Key is the lock key as the caller knows it, without a prefix.
	Key string
	// Token names one episode: one wait and the lease that follows. A token
	// for which a release was ever sent is dead and must not be used again.
	Token string
	// TTL is the life that a grant or a renewal gives the key.
	TTL time.Duration
	// Bound is the longest that the transition may take, re-send included.
	Bound time.Duration
}

// An Answer is what the server said to a Take or an Ask.
type Answer struct {
	// Granted is true when the key now carries the token of the request.
	Granted bool
	// Since is when the granting command was sent: the lease's life counts
	// from here. It carries a monotonic clock reading.
	Since time.Time
	// Holder is the token or foreign value found in the key, if not granted.
	Holder string
	// Remaining is how long the holder's key lives on: zero where it is not
	// known, negative where the key has no expiry.
	Remaining time.Duration
}

// Store is the server's side of the lock: each method is one atomic
// transition, safe to send again with the same token.
//
// Every method returns within the request's bound. An error is always a
// *Fault. The context carries values only; its end is not obeyed, because a
// command that was sent cannot be called back. All methods are safe for
// concurrent use.
type Store interface {
	// Take asks once for a key on which no contention is known.
	Take(ctx context.Context, r Request) (Answer, error)
	// Ask asks again for a key that somebody holds. It also confirms a grant
	// that an earlier command of the same token won, and raises its life to a
	// full TTL.
	Ask(ctx context.Context, r Request) (Answer, error)
	// Renew raises the life of the key to at least TTL. It never creates and
	// never shortens. It returns when the deciding command was sent, and
	// whether the key carried the token.
	Renew(ctx context.Context, r Request) (sent time.Time, held bool, err error)
	// Release frees the key if it carries the token, and reports whether it
	// did. Where an earlier send of this release may have done it, the report
	// is true.
	Release(ctx context.Context, r Request) (held bool, err error)
	// OnHint registers the one function that is told "look again at this key,
	// this token of ours was seen in it", by a reply that came after its
	// bound. It must be called before the first transition.
	OnHint(func(key, token string))
	// Close waits until every command that was left behind has ended, or until
	// ctx ends; then it returns ctx's error.
	Close(ctx context.Context) error
}

package main

import (
	"context"
	"time"
)

// A client sends requests to a running service, so that scenarios do not depend on
// the protocol. It is safe for concurrent use.
type client interface {
	// transfer moves money, or is refused at once if an account is locked.
	transfer(ctx context.Context, from, to string, cents int64) (answer, error)
	// settle is a transfer that waits while an account is locked.
	settle(ctx context.Context, from, to string, cents int64) (answer, error)
	// pay is a transfer that is made once for its idempotency key, even if it is sent
	// several times.
	pay(ctx context.Context, key, from, to string, cents int64) (answer, error)
	// balance reads the balance of an account, and waits while a transfer has it.
	balance(ctx context.Context, account string) (answer, error)
	// order places an order of a user, and waits while the user is locked.
	order(ctx context.Context, user, item string) (answer, error)
	// close closes the connections.
	close()
}

// An answer is the answer of a service to a request.
type answer struct {
	Done       bool          // the handler has executed the request
	Busy       bool          // another request holds the lock
	Unknown    bool          // it is unknown whether the request took effect
	Status     string        // the status of the protocol, such as "409"
	RetryAfter time.Duration // when to retry; 0 if the answer has no time
	Retry      string        // what contains the time in this protocol
	Replayed   bool          // marked as the answer of an earlier request
	Content    string        // the part that is equal in a replay and the first answer
}

// String returns "done", "unknown", or the status.
func (a answer) String() string {
	switch {
	case a.Done:
		return "done"
	case a.Unknown:
		return "unknown"
	}
	return a.Status
}

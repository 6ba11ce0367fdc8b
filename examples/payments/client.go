package main

import (
	"context"
	"time"
)

// A client sends requests to a running service. The parts know no more of the
// service's protocol than this. It is safe for concurrent use.
type client interface {
	// transfer moves money, or is refused at once if an account is locked.
	transfer(ctx context.Context, from, to string, cents int64) (answer, error)
	// settle is a transfer that waits while an account is locked.
	settle(ctx context.Context, from, to string, cents int64) (answer, error)
	// pay is a transfer that is made once for its idempotency key, however often
	// it is sent.
	pay(ctx context.Context, key, from, to string, cents int64) (answer, error)
	// order places an order of a user, and waits while the user is locked.
	order(ctx context.Context, user, item string) (answer, error)
	// close closes the connections.
	close()
}

// An answer is what a service said to a request.
type answer struct {
	Done       bool          // the handler ran, and all was well
	Busy       bool          // another holds the lock
	Status     string        // in the words of the protocol, such as "409"
	RetryAfter time.Duration // when to try again; 0 if the answer did not say
	Retry      string        // what said so, in the words of the protocol
	Replayed   bool          // marked as the answer of an earlier request
	Content    string        // all that a replay has in common with the first answer
}

// String returns the answer in a word.
func (a answer) String() string {
	if a.Done {
		return "done"
	}
	return a.Status
}

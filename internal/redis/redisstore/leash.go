package redisstore

import (
	"context"
	"time"
)

// A leash is the context of a leader's batch: a deadline for its reads and writes,
// and an end for its wait for a connection, to which the lane sees, so that it
// needs no timer. Any other batch may take as long as the client lets it, for what
// comes late.
type leash struct {
	deadline time.Time
	over     chan struct{}
}

var _ context.Context = (*leash)(nil)

// Deadline returns the deadline.
func (l *leash) Deadline() (time.Time, bool) { return l.deadline, true }

// Done returns a channel that is closed at the end.
func (l *leash) Done() <-chan struct{} { return l.over }

// Err returns context.DeadlineExceeded after the end.
func (l *leash) Err() error {
	select {
	case <-l.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value returns nil: a batch is of many callers.
func (*leash) Value(any) any { return nil }

package pipeline

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// swiftTime is how long the last batch may have taken where a caller is to lead the
// next one.
const swiftTime = 5 * time.Millisecond

// leads reports whether the caller of the exchange runs the batch itself. It may
// while the server is swift, since then it is hardly ever kept longer than by
// waiting, and there is a connection; and while it is the only one: see gather.
func (l *lane) leads(b *batch, x *Call) bool {
	if b == nil || !l.leadable || !x.inline || !l.swift || l.crowded || x.half < store.InlineTime {
		return false
	}
	x.led, x.ledUntil = b, b.begun.Add(store.InlineTime)
	l.watch(x.ledUntil)
	b.leash = &leash{x.ledUntil, make(chan struct{})}
	return true
}

// lead runs the batch on the goroutine of the caller, who waits for it anyhow:
// that saves two switches between goroutines, which cost more than all the rest
// that is done here.
func (l *lane) lead(b *batch) {
	returned := false
	defer func() {
		if !returned { // a hook of the client's has panicked
			l.mu.Lock()
			l.leave(b)
			l.start()
			l.mu.Unlock()
			l.work.Done()
		}
	}()
	more := l.turn(b)
	returned = true
	if more { // what came meanwhile is not the caller's
		go l.run(b)
		return
	}
	l.work.Done()
}

// back notes that the leader, if there was one, has come back.
func (b *batch) back() {
	b.leash = nil
	for _, s := range b.sends {
		if s.of.led == b {
			s.of.led = nil
		}
	}
}

// letGo ends the wait of a leader for a connection; that for a reply ends at the
// deadline. The lane does not wait for it.
func (l *lane) letGo(x *Call) {
	if x.led != nil {
		l.leave(x.led)
		close(x.led.leash.over)
		x.led = nil
	}
}

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

package pipeline

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// fastTime is how long the last batch may have taken if a caller is to run the next one
// inline.
const fastTime = 5 * time.Millisecond

// mayRunInline reports whether the caller of c runs the batch on its own goroutine. That
// is so while the server is fast, because the call then hardly ever takes longer than
// waiting for a reply, and while the caller is the only one: see coalesce. After a
// congestionPause the batch may have the calls of others. mayRunInline prepares the batch for
// it. The caller has locked mu.
func (l *lane) mayRunInline(b *batch, c *Call) bool {
	if b == nil || b.sends[0].call != c || !l.canRunInline || !c.offersInline || !l.wasFast || l.lastSize > 1 || c.resendAfter < store.InlineTime {
		return false
	}
	c.inline, c.inlineUntil = b, b.begun.Add(store.InlineTime)
	b.inline = &inlineContext{c.inlineUntil, make(chan struct{})}
	return true
}

// runInline runs the batch on the goroutine of a caller that waits for the reply anyhow.
// It saves two switches between goroutines, which take longer than the rest of the code on
// this path.
func (l *lane) runInline(b *batch) {
	returned := false
	defer func() {
		if !returned { // a hook of the client has panicked
			l.mu.Lock()
			l.abandon(b)
			l.noteEnd(b, false)
			l.start()
			l.mu.Unlock()
			l.work.Done()
		}
	}()
	more := l.cycle(b)
	returned = true
	if more { // these commands belong to other callers
		go l.run(b)
		return
	}
	l.work.Done()
}

// endInline notes that no caller runs the batch any more.
func (b *batch) endInline() {
	b.inline = nil
	for _, s := range b.sends {
		if s.call.inline == b {
			s.call.inline = nil
		}
	}
}

// detach abandons the batch that the caller of c runs, and ends its wait for a connection.
// The batch's wait for a reply ends by its deadline; the lane does not wait for it.
func (l *lane) detach(c *Call) {
	if c.inline != nil {
		l.abandon(c.inline)
		close(c.inline.inline.ended)
		c.inline = nil
	}
}

// An inlineContext is the context of a batch that a caller runs. Its deadline bounds reads
// and writes, and its end, which the lane causes, bounds the wait for a connection. So it
// needs no timer. Other batches have no deadline: they read late replies for as long as
// the client permits.
type inlineContext struct {
	deadline time.Time
	ended    chan struct{}
}

var _ context.Context = (*inlineContext)(nil)

// Deadline returns the deadline.
func (c *inlineContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done returns a channel that is closed at the end.
func (c *inlineContext) Done() <-chan struct{} { return c.ended }

// Err returns context.DeadlineExceeded after the end.
func (c *inlineContext) Err() error {
	select {
	case <-c.ended:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value returns nil: a batch belongs to many callers.
func (*inlineContext) Value(any) any { return nil }

package connectlock

import (
	"context"
	"sync/atomic"
)

// A lateContext is the context of a stream that takes its lock with its first
// message. After that it carries the lease, and ends with the lease. So the handler,
// and interceptors before it, may read the context at any time.
type lateContext struct {
	context.Context // ends with the stream, and with the lease
	cancel          context.CancelCauseFunc
	locked          atomic.Pointer[context.Context] // nil before the lock is taken
}

func newLateContext(outer context.Context) *lateContext {
	ctx, cancel := context.WithCancelCause(outer)
	return &lateContext{Context: ctx, cancel: cancel}
}

// lock sets the context of the lease.
func (c *lateContext) lock(locked context.Context) {
	c.locked.Store(&locked)
	context.AfterFunc(locked, func() { c.cancel(context.Cause(locked)) })
}

// A waitingKey has a value in the context of a stream until the first message takes
// the lock.
type waitingKey struct{}

// Value returns a value of the lease's context, once the lock is taken.
func (c *lateContext) Value(key any) any {
	own := c.Context.Value(key)
	switch locked := c.locked.Load(); {
	case own == c.Context:
		return own // package context looks for the parent that it can cancel from, and so needs no goroutine
	case locked != nil:
		return (*locked).Value(key)
	case key == waitingKey{}:
		return true
	}
	return own
}

package grpclock

import (
	"context"
	"sync/atomic"
)

// A lateContext is the context of a stream that gets its lock only with its
// first message. From then on it carries the lease, and ends with it. So the
// handler, and interceptors before it, may ask for the context at any time.
type lateContext struct {
	context.Context // ends with the stream, and with the lease
	cancel          context.CancelCauseFunc
	locked          atomic.Pointer[context.Context] // nil while there is no lock
}

func newLateContext(outer context.Context) *lateContext {
	ctx, cancel := context.WithCancelCause(outer)
	return &lateContext{Context: ctx, cancel: cancel}
}

// lock tells of the context of the lease.
func (c *lateContext) lock(locked context.Context) {
	c.locked.Store(&locked)
	context.AfterFunc(locked, func() { c.cancel(context.Cause(locked)) })
}

// A waitingKey has a value in the context of a stream while its lock waits for
// the first message.
type waitingKey struct{}

// Value returns a value of the lease's context, as soon as there is one.
func (c *lateContext) Value(key any) any {
	own := c.Context.Value(key)
	switch locked := c.locked.Load(); {
	case own == c.Context:
		return own // package context asks what ends this context, to spare a goroutine
	case locked != nil:
		return (*locked).Value(key)
	case key == waitingKey{}:
		return true
	}
	return own
}

package core

import (
	"context"

	"github.com/reqlock/reqlock/internal/engine"
)

// An attemptContext is the parent of an attempt's context: the values of the caller's context
// without its end, as context.WithoutCancel. An attempt that is cut off in the middle would
// have an unknown outcome, and its client sends the request again anyway.
type attemptContext struct {
	ctx context.Context
	// within are the leases of other locks under which the caller runs. Unlike the caller's
	// context, their end ends the attempt's context.
	within []*engine.Nested
}

// attemptContextOf returns the parent of the context of an attempt that begins under ctx.
func (l *Locker) attemptContextOf(ctx context.Context) attemptContext {
	if l.settings.clientCancel {
		return attemptContext{ctx: ctx}
	}
	c := attemptContext{ctx: context.WithoutCancel(ctx)}
	outer, _ := FromContext(ctx)
	for ; outer != nil; outer = outer.parent {
		within := outer.hold.Nest(c.ctx) //nolint:contextcheck // it is derived from the caller's, without its end
		if within == nil {               // that lease has ended, and so has the caller's context
			c.leave()
			return attemptContext{ctx: ctx}
		}
		c.ctx = within.Context()
		c.within = append(c.within, within)
	}
	return c
}

// leave ends the dependence on the leases of other locks.
func (c attemptContext) leave() {
	for _, within := range c.within {
		within.Release()
	}
}

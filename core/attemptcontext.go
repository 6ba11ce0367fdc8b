package core

import (
	"context"
	"time"
)

// A callerContext has the values of the context of an attempt's caller, but not its end, as
// that of context.WithoutCancel. An attempt that is cut off in the middle would have an
// unknown outcome, and its client sends the request again anyway. It is a part of the Attempt,
// so that it needs no memory of its own.
type callerContext struct{ context.Context }

// Deadline returns no deadline.
func (*callerContext) Deadline() (end time.Time, ends bool) { return }

// Done returns nil: the context does not end.
func (*callerContext) Done() <-chan struct{} { return nil }

// Err returns nil.
func (*callerContext) Err() error { return nil }

// AttemptsWithoutClient returns how many idempotent requests run under this Locker and its views
// although their client has gone: the context that was given to Begin has ended. WithMaxHold
// limits how long they run. A request that has lost its lease does not count. The method looks at
// each lease of the process, so it is for a metric.
func (l *Locker) AttemptsWithoutClient() int {
	n := 0
	for _, ctx := range l.engine.AttemptContexts() {
		if ctx.Err() != nil && !isLoss(context.Cause(ctx)) { // not by the loss of a lock outside
			n++
		}
	}
	return n
}

// parentOf returns the parent of the context of the attempt, which begins under ctx. Unlike
// ctx, the end of a lease of another lock under which the caller runs ends it.
func (a *Attempt) parentOf(ctx context.Context) context.Context {
	if a.locker.settings.clientCancel {
		return ctx
	}
	a.caller = callerContext{ctx}
	var parent context.Context = &a.caller
	if ctx.Done() == nil {
		return parent // the caller has detached the context from those leases
	}
	outer, _ := leaseOf(ctx)
	for ; outer != nil; outer = outer.parent {
		within := outer.hold.Nest(parent)
		if within == nil { // that lease has ended
			if ctx.Err() == nil {
				continue // and the caller goes on without it
			}
			a.leave()
			return ctx
		}
		parent = within.Context() //nolint:fatcontext // one level for each lease outside
		a.within = append(a.within, within)
	}
	return parent
}

// leave ends the dependence of the attempt on leases of other locks.
func (a *Attempt) leave() {
	for _, within := range a.within {
		within.Release()
	}
}

package adapter

import (
	"context"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// An RPCExchange is one idempotent call and its answer: the stored answer, or the answer that the
// handler will give. Only the goroutine of the call may use it.
type RPCExchange[R any] struct {
	of       *IdempotentRPC[R]
	attempt  *core.Attempt
	entry    Entry
	answer   RPCAnswer // if replayed
	replayed bool

	in      inside
	base    pass  // the context of the handler
	refusal error // with which the call ends, or nil
}

// Replayed returns the stored answer of an earlier attempt, and whether there is one. The adapter
// sends it, or calls Run if there is none.
func (x *RPCExchange[R]) Replayed() (RPCAnswer, bool) {
	if x.replayed {
		x.entry.Returned()
	}
	return x.answer, x.replayed
}

// Run runs the handler of a call with the context of the attempt, and ends the attempt before it
// returns the error for the client. answerOf returns the answer to store, after a handler with this
// error, or false if there is none that can be replayed.
//
// If the handler panics or ends its goroutine, the attempt ends, and the panic goes on. An error
// while the attempt ends does not change the answer.
func (x *RPCExchange[R]) Run(handler func(context.Context) error, answerOf func(err error) (RPCAnswer, bool)) (err error) {
	end, returned := x.endUnknown(errDeciderPanicked), false // stays if an option's function panics
	leased := x.attempt.Lease().Context()
	x.base = pass{Context: leased, isRPC: true, in: &x.in, outer: x.entry.pass, isBase: true}
	if outer := x.entry.pass; outer != nil {
		x.in.outer = outer.in
	}
	defer func() {
		_ = end(context.WithoutCancel(x.entry.ctx)) // also after the client has disconnected
	}()
	defer func() {
		if returned {
			return
		}
		failure := RPCFailure{Code: rpcUnknown, Panic: true}
		if x.decide(failure, false) == core.EndAbort {
			end = x.attempt.Abort
			return
		}
		end = x.endUnknown(x.unknownCause(failure, false))
	}()
	err = handler(&x.base)
	returned = true
	err, lost := x.of.rpc.lossOf(leased, err)
	failure := RPCFailure{Code: x.of.rpc.codeOf(err), Err: err}
	x.refusal = x.of.rpc.refusalIn(&x.in, err)
	isRefused := x.refusal != nil
	ending := x.decide(failure, isRefused)
	x.leave(isRefused && ending == core.EndAbort)
	switch ending {
	default:
		x.entry.pass.interrupt()
		end = x.endUnknown(x.unknownCause(failure, isRefused))
	case core.EndAbort:
		end = x.attempt.Abort
		if lost { // nothing has happened, so the client may try again
			err = x.of.rpc.Refuse(bridge.CutOff(x.attempt, context.Cause(leased), true), err)
		}
	case core.EndDone:
		end = x.attempt.Done
	case core.EndCommit:
		end = x.attempt.Done // also if encoding panics
		if given, ok := answerOf(err); ok {
			encoded := given.encode()
			end = func(ctx context.Context) error { return bridge.CommitOwned(ctx, x.attempt, encoded) }
		}
	}
	return err
}

// Refusal returns the error of a middleware behind with which the call ends after Run, or nil. The
// error of Run may have only its status.
func (x *RPCExchange[R]) Refusal() error { return x.refusal }

// endUnknown returns the function that ends the attempt with an unknown outcome.
func (x *RPCExchange[R]) endUnknown(cause error) func(context.Context) error {
	return func(ctx context.Context) error { return x.attempt.Unknown(ctx, cause) }
}

// leave says to the idempotent middleware outside, if there is one, that the handler has returned, and
// whether the call did not run.
func (x *RPCExchange[R]) leave(notRun bool) {
	if p := x.entry.pass; p != nil {
		p.set(func() { p.ended, p.rejected = true, notRun })
	}
}

package grpclock

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// run runs a handler as an attempt, and ends the attempt before the answer is sent.
// An error while the attempt ends does not change the answer.
func (c *config) run(ctx context.Context, p *pass, a *core.Attempt, req any, handler grpc.UnaryHandler) (reply any, err error) {
	interrupt := func(cause error) func(context.Context) error {
		return func(ctx context.Context) error { return a.Unknown(ctx, cause) }
	}
	end, returned := interrupt(errDeciderPanicked), false // stays if an option's function panics
	p.ran = true
	leased := a.Lease().Context()
	inside, exchange := newExchange(leased, p)
	defer func() {
		_ = end(context.WithoutCancel(ctx)) // also after the client has disconnected
	}()
	defer func() {
		if returned {
			return
		}
		failure := Failure{Code: codes.Unknown, Panic: true}
		if c.decide(core.Ending(bridge.Decision(a)), failure, false, exchange) == core.EndAbort {
			end = a.Abort
			return
		}
		end = interrupt(unknownCause(core.Ending(bridge.Decision(a)), failure, false, exchange))
	}()
	reply, err = handler(inside, req) //nolint:contextcheck // the lease's context is derived from ctx
	returned = true
	err, lost := lossOf(leased, err) //nolint:contextcheck // as above
	failure, refusal := Failure{Code: codeOf(err), Err: err}, exchange.refusalIn(err)
	refused := refusal != nil
	decision := c.decide(core.Ending(bridge.Decision(a)), failure, refused, exchange)
	p.ran, p.returned = !refused || decision != core.EndAbort, true
	switch decision {
	default:
		p.interrupt()
		end = interrupt(unknownCause(core.Ending(bridge.Decision(a)), failure, refused, exchange))
	case core.EndAbort:
		end = a.Abort
		if lost { // nothing has happened, so the client may try again
			err = newRefusal(StatusOf(bridge.CutOff(a, context.Cause(leased), true)), err) //nolint:contextcheck // as above
		}
	case core.EndDone:
		end = a.Done
	case core.EndCommit:
		end = a.Done // also if encoding panics
		if record, ok := exchange.metadata.encode(reply, err); ok {
			end = func(ctx context.Context) error { return bridge.CommitOwned(ctx, a, record) }
		}
	}
	if refused {
		pushBack(ctx, refusal) // also if err has only its status
	} else {
		pushBack(ctx, err)
	}
	return reply, err
}

// codeOf returns the code that gRPC sends for the error of a handler.
func codeOf(err error) codes.Code {
	if code := sent(err).Code(); code != codes.OK || err == nil {
		return code
	}
	return codes.Unknown // an error with the status OK, which clients interpret differently
}

// sent returns the status that gRPC sends for the error of a handler.
func sent(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	return status.FromContextError(err)
}

// deterministic reports whether a copy of the call would get the same code again: the
// call was executed, or its content was refused. All other codes depend on
// credentials, rights, capacity, other state, or a failure of the server, and can
// differ for the next call.
func deterministic(code codes.Code) bool {
	switch code {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition,
		codes.OutOfRange, codes.Unimplemented:
		return true
	default:
		return false
	}
}

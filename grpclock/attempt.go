package grpclock

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
)

// run runs a handler as an attempt, and ends the attempt before the answer is sent.
// An error while the attempt ends does not change the answer.
func (c *config) run(ctx context.Context, a *core.Attempt, req any, handler grpc.UnaryHandler) (reply any, err error) {
	end, returned := a.Abort, false
	defer func() {
		// A handler that did not return has no answer to store.
		if d := a.Decision(); d == core.Uncertain || d == core.StoreAnswer && !returned {
			end = a.Interrupt
		}
		_ = end(context.WithoutCancel(ctx)) // also after the client has disconnected
	}()
	inside, recorder := recordMetadata(a.Lease().Context())
	reply, err = handler(inside, req) //nolint:contextcheck // the lease's context is derived from ctx
	returned = true
	if !c.keeps(a, err) {
		return reply, err
	}
	end = a.Seal // also if encoding panics
	if record, ok := recorder.encode(reply, err); ok {
		end = func(ctx context.Context) error { return a.Commit(ctx, record) }
	}
	return reply, err
}

// keeps reports whether an answer is stored for later copies of the call.
func (c *config) keeps(a *core.Attempt, err error) bool {
	if decision := a.Decision(); decision != core.Undecided {
		return decision == core.StoreAnswer
	}
	var refused *refusal // by an interceptor behind this one: the handler did not run
	return !errors.As(err, &refused) && c.stored(codeOf(err))
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

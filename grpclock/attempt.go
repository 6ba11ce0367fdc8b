package grpclock

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
)

// run runs a handler as an attempt, and ends the attempt before the answer is
// sent. What becomes of that changes nothing in the answer.
func (c *config) run(ctx context.Context, a *core.Attempt, req any, handler grpc.UnaryHandler) (reply any, err error) {
	end, returned := a.Abort, false
	defer func() {
		// A handler that has broken has returned no answer to store.
		if d := a.Decision(); d == core.Uncertain || d == core.StoreAnswer && !returned {
			end = a.Interrupt
		}
		_ = end(context.WithoutCancel(ctx)) // it ends also when the client has gone
	}()
	inside, notes := takeNotes(a.Lease().Context())
	reply, err = handler(inside, req) //nolint:contextcheck // the lease's context is derived from ctx
	returned = true
	if !c.keeps(a, err) {
		return reply, err
	}
	end = a.Seal // also where writing it down panics
	if record, ok := notes.write(reply, err); ok {
		end = func(ctx context.Context) error { return a.Commit(ctx, record) }
	}
	return reply, err
}

// keeps reports whether an answer is the one of all later copies of the call.
func (c *config) keeps(a *core.Attempt, err error) bool {
	if decision := a.Decision(); decision != core.Undecided {
		return decision == core.StoreAnswer
	}
	var refused *refusal // by an interceptor behind this one: the handler has not run
	return !errors.As(err, &refused) && c.stored(codeOf(err))
}

// codeOf returns the code that is sent for what a handler returned.
func codeOf(err error) codes.Code {
	if code := sent(err).Code(); code != codes.OK || err == nil {
		return code
	}
	return codes.Unknown // an error with the status OK, of which clients make what they like
}

// sent returns the status that gRPC sends for what a handler returned.
func sent(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	return status.FromContextError(err)
}

// deterministic reports whether a code says what a copy of the call would meet
// again: it was done, or refused for what it is. All others are for want of
// credentials, rights or capacity, for the state of something else, or a failure
// of the server, and can be another one the next time.
func deterministic(code codes.Code) bool {
	switch code {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition,
		codes.OutOfRange, codes.Unimplemented:
		return true
	default:
		return false
	}
}

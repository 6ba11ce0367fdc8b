package grpclock

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
)

// IdempotentUnaryServerInterceptor runs unary calls that take effect once for
// their key, however often they come: the first one runs, and the others get
// its answer. See "Idempotent calls" in the package comment. Streams pass by it.
//
// The key is one of the method: the same key for two methods makes two. Join it
// with who the client is, see IdempotencyKey. A call without a key is refused
// with INVALID_ARGUMENT, unless WithOptionalKey lets it pass; ErrSkip runs a call
// untouched, as the methods that ByMethod does not list.
//
// The options are those of core, which are given to l.With, and of this package
// all but Also. While a copy of the call runs, another one is refused with
// ABORTED and a RetryInfo, or waits for the answer as long as core.WithWait says.
// One with another message is refused with FAILED_PRECONDITION (MISMATCH), and so
// is one whose first copy died (OUTCOME_UNKNOWN), see core.WithInterrupted. One
// whose answer was not kept is refused with ALREADY_EXISTS
// (COMPLETED_UNREPLAYABLE), and one without Redis with UNAVAILABLE.
//
// IdempotentUnaryServerInterceptor panics if l or key is nil, if l, with the
// options, runs calls without Redis (core.WithFailOpen), if l is one of
// core.NewQuorum, or if an option is bad or another adapter's. What it returns is safe for concurrent use.
func IdempotentUnaryServerInterceptor(l *core.Locker, key KeyFunc, opts ...Option) grpc.UnaryServerInterceptor {
	const name = "IdempotentUnaryServerInterceptor"
	c := configOf(name, l, key, opts)
	adapter.Must(len(c.keys) == 1, name+" has one key; to lock those of Also, put a UnaryServerInterceptor behind it")
	adapter.Must(!c.locks.FailsOpen(), name+" needs a locker without WithFailOpen: a call would take effect twice")
	adapter.Must(c.locks.KeepsRecords(), name+" needs a locker of core.New: a quorum keeps no records of calls")
	return c.idempotent
}

// idempotent runs a unary call once for its key.
func (c *config) idempotent(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if c.mayRunWithoutKey(ctx) {
		return handler(ctx, req)
	}
	call := NewCall(ctx, info.FullMethod, req)
	attempt, err := c.begin(call)
	switch {
	case errors.Is(err, core.ErrSkip):
		return handler(ctx, req)
	case err != nil:
		return nil, c.refuse(call, err)
	}
	if stored, ok := attempt.Replay(); ok {
		return c.replay(call, stored)
	}
	return c.run(ctx, attempt, req, handler)
}

// begin begins the attempt at a call. Its error is one of core's, or ErrSkip.
func (c *config) begin(call *Call) (*core.Attempt, error) {
	key, err := c.keys[0].Read(call)
	if err != nil {
		return nil, err
	}
	fingerprint, err := c.fingerprint(call)
	if err != nil {
		return nil, core.KeyError(err)
	}
	return c.locks.Begin(call.ctx, core.EndpointKey("", call.method, key), fingerprint)
}

// AttemptFromContext returns the attempt under which a call runs, for what its
// handler knows of it (core.Attempt.Decide) or wants to know (Number); false if
// it runs without one.
func AttemptFromContext(ctx context.Context) (*core.Attempt, bool) {
	return core.AttemptFromContext(ctx)
}

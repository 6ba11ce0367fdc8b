package grpclock

import (
	"context"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
)

// IdempotentUnaryServerInterceptor runs a unary call once for its key: the first call
// runs, and its copies get the first answer. See "Idempotent calls" in the package
// comment. It does not affect streams.
//
// The keys of two methods are independent. Join the key with the user, see
// IdempotencyKey. A call without a key is refused with INVALID_ARGUMENT, unless
// core.WithOptionalKey allows it. If the key returns core.ErrSkip, as the key of a
// ByMethod does for methods that are not listed, the call runs as without the interceptor.
//
// The options are options of core, which are passed to l.With, and options of this
// package. While the first call runs, a copy is refused with ABORTED and
// a RetryInfo, or waits for the answer with core.WithWait. A call with the same key
// and another message is refused with FAILED_PRECONDITION (MISMATCH). A copy is
// refused with FAILED_PRECONDITION (OUTCOME_UNKNOWN) if the process of the first call
// died, see core.WithRerunUnknown; with ALREADY_EXISTS (COMPLETED_UNREPLAYABLE) if the
// answer was not stored; and with UNAVAILABLE if Redis is unavailable.
//
// The handler goes on if its client leaves, or after the deadline of the call: see
// core.WithClientCancel.
//
// IdempotentUnaryServerInterceptor panics if key is the zero Key, several keys (core.All), or a
// key with Permits, Shared or SharedWhen. It also panics if l is nil or from core.NewQuorum, if
// l, with the options, runs calls without Redis (core.WithFailOpen) or shares its locks
// (core.WithPermits and core.WithShared), or if an option is invalid, has no effect on its calls
// or belongs to another adapter. The interceptor is safe for concurrent use.
func IdempotentUnaryServerInterceptor(l *core.Locker, key Key, opts ...core.Option) grpc.UnaryServerInterceptor {
	c := idempotentOf("IdempotentUnaryServerInterceptor", l, key, opts)
	c.locksUnary()
	return c.idempotent
}

// idempotent runs a unary call once for its key.
func (c *config) idempotent(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	c.warnOfUnlocked()
	call := NewCall(ctx, info.FullMethod, req)
	entry, exchange, err := c.once.Begin(ctx, call)
	defer entry.Leave()
	switch {
	case err != nil:
		return nil, c.refuse(entry, call, err)
	case exchange == nil:
		return c.runLocked(entry, req, handler)
	}
	if stored, ok := exchange.Replayed(); ok {
		return c.replay(entry, call, stored)
	}
	return c.run(entry, exchange, req, handler)
}

package grpclock

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/bridge"
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

// idempotentOf is configOf for an interceptor of idempotent calls. It checks the arguments of the
// interceptor, which has this name.
func idempotentOf(name string, l *core.Locker, key Key, opts []core.Option) *config {
	c := configOf(adapter.Must(registration.IdempotentView(self, name, bridge.RPCIdempotent, l, key, opts)), key)
	c.idempotency = adapter.Must(idempotencyOf(c.locks))
	c.unaryOnly = true
	return c
}

// idempotent runs a unary call once for its key.
func (c *config) idempotent(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	c.warnOfUnlocked()
	call := NewCall(ctx, info.FullMethod, req)
	pass := call.enter()
	defer pass.leave()
	if c.optional != nil && c.optional(call) {
		return pass.run(ctx, req, handler)
	}
	attempt, err := c.begin(call)
	switch {
	case errors.Is(err, core.ErrSkip):
		return pass.run(ctx, req, handler)
	case err != nil:
		return nil, c.refuse(call, err)
	}
	if stored, ok := attempt.Replay(); ok {
		pass.ran, pass.returned = true, true // before
		return c.replay(call, stored)
	}
	return c.run(ctx, pass, attempt, req, handler)
}

// begin begins an attempt for a call. Its error is an error of core, or core.ErrSkip.
func (c *config) begin(call *Call) (*core.Attempt, error) {
	key, err := c.bound.ReadOne(call.ctx, call)
	if err != nil {
		return nil, err
	}
	fingerprint, err := c.fingerprint(call)
	if err != nil {
		c.bound.Refuse(call.ctx, err)
		return nil, err
	}
	attempt, err := c.bound.Begin(call.ctx, key, "", call.method, fingerprint)
	return attempt.(*core.Attempt), err //nolint:forcetypeassert // see bridge
}

package grpclock

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/adapter"
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
		return nil, c.refuse(ctx, entry, call, err)
	case exchange == nil:
		return c.runLocked(ctx, entry, req, handler)
	}
	if stored, ok := exchange.Replayed(); ok {
		return c.replay(ctx, entry, call, stored)
	}
	return c.run(ctx, entry, exchange, req, handler)
}

// rpc returns how calls and their errors are read.
func rpc() adapter.RPC[*Call] {
	return adapter.RPC[*Call]{
		Method: (*Call).FullMethod,
		Header: func(c *Call, name string) []string {
			return metadata.ValueFromIncomingContext(c.ctx, strings.ToLower(name))
		},
		Fingerprint: calls().Fingerprint,
		Code: func(err error) (code uint32, ok bool) {
			own, ok := err.(interface{ GRPCStatus() *status.Status })
			if !ok {
				return 0, false
			}
			return uint32(own.GRPCStatus().Code()), true
		},
		Reason: func(err error) string {
			own, ok := err.(interface{ GRPCStatus() *status.Status })
			if !ok {
				return ""
			}
			return reasonIn(own.GRPCStatus())
		},
		Refuse:  func(why, cause error) error { return newRefusal(StatusOf(why), cause) },
		Stored:  storedOf,
		Unknown: unknownOf,
	}
}

// run runs a handler as an attempt, and ends the attempt before the answer is sent.
func (c *config) run(ctx context.Context, entry adapter.Entry, x *adapter.RPCExchange[*Call], req any, handler grpc.UnaryHandler) (reply any, err error) {
	var recorder metadataRecorder
	err = x.Run(func(ctx context.Context) error {
		reply, err = handler(recorder.within(ctx), req)
		return err
	}, func(err error) (adapter.RPCAnswer, bool) { return recorder.answer(reply, err) })
	if refused := x.Refusal(); refused != nil {
		pushBack(ctx, entry, refused) // also if err has only its status
	} else {
		pushBack(ctx, entry, err)
	}
	return reply, err
}

// sent returns the status that gRPC sends for the error of a handler.
func sent(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	return status.FromContextError(err)
}

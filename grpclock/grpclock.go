package grpclock

import (
	"context"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
)

// A KeyFunc reads the lock key from a call. Functions of this package and of
// core, and plain functions, go together:
//
//	core.Named("account", grpclock.Message((*pb.TransferRequest).GetAccountId))
//
// A function of your own that looks at the message does it with comma-ok, as
// Call.Message shows: c.Message().(*pb.TransferRequest) alone panics on other
// methods, and on streams, which open without a message.
type KeyFunc = core.KeyFunc[*Call]

// UnaryServerInterceptor runs unary calls under a lock. key says which lock;
// calls with the same key run one at a time, in all processes that use the same
// Redis. The options are those of core, which are given to l.With, and those of
// this package.
//
// Without core.WithWait a call whose lock is held by another is refused at
// once, as StatusOf describes. The handler finds the lease in its context,
// which is cancelled if the lease is lost. The lock is freed when the handler
// returns, panics or ends its goroutine, and not before: not when its client
// has gone.
//
// UnaryServerInterceptor panics if l or key is nil, or an option is bad or
// another adapter's. What it returns is safe for concurrent use.
func UnaryServerInterceptor(l *core.Locker, key KeyFunc, opts ...Option) grpc.UnaryServerInterceptor {
	return lockOf("UnaryServerInterceptor", l, key, opts).unary
}

// unary runs a unary call under its lock.
func (c *config) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	call := NewCall(ctx, info.FullMethod, req)
	locked, release, err := core.Enter(ctx, c.locks, call, c.keys...)
	if err != nil {
		return nil, c.refuse(call, err)
	}
	defer release()
	return handler(locked, req)
}

// StreamServerInterceptor is UnaryServerInterceptor for streams. The lock is
// held until the handler of the stream ends.
//
// The key is tried when the stream opens. If that needs no message, the lock is
// taken before the handler runs. Else it is taken when the handler receives the
// first message, whose key it is; in a stream from the server, generated code
// does that before the handler runs. A handler that sends messages or headers
// before it has received is refused with INTERNAL. Whatever a handler makes of
// a refusal, the client gets the refusal. Inside another interceptor of this
// package that waits for the first message, this one waits for it too, so that
// locks are taken from the outside inwards.
//
// A stream that ends without a message has a key only if there is one without a
// message: core.First goes on past key functions that need one.
func StreamServerInterceptor(l *core.Locker, key KeyFunc, opts ...Option) grpc.StreamServerInterceptor {
	return lockOf("StreamServerInterceptor", l, key, opts).stream
}

// stream runs a stream under its lock.
func (c *config) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx := ss.Context()
	if ctx.Value(waitingKey{}) != nil { // the lock of an outer interceptor comes first
		return c.late(srv, ss, info, handler)
	}
	opening := newOpening(ctx, info.FullMethod)
	locked, release, err := core.Enter(ctx, c.locks, opening, c.keys...)
	switch {
	case opening.asked:
		return c.late(srv, ss, info, handler)
	case err != nil:
		return c.refuse(opening, err)
	}
	defer release()
	return handler(srv, &lockedStream{ss, locked})
}

// lockedStream is a stream that has its lock from the beginning.
type lockedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context returns the context that carries the lease.
func (s *lockedStream) Context() context.Context { return s.ctx }

// FromContext returns the lease under which a call runs, and false if it runs
// without one. For the several keys of one call it is the lease of the
// interceptor's first key.
func FromContext(ctx context.Context) (*core.Lease, bool) { return core.FromContext(ctx) }

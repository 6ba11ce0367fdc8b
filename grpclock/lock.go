package grpclock

import (
	"context"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// UnaryServerInterceptor runs unary calls under a lock. key chooses the lock: calls
// with the same key run one at a time, in all processes that use the same Redis. The
// options are options of core, which are passed to l.With, and options of this package.
//
// It does not run streams: ServerOptions makes this interceptor and the one for streams.
//
// Without core.WithWait a call is refused at once if another call holds its lock, as
// StatusOf describes. The handler finds the lease in its context, which is cancelled
// if the lease is lost. The lock is freed when the handler returns, panics or ends
// its goroutine, and not before, even if the client disconnects. If the handler returns the
// cause with which its lease has ended, or the error of its context, the client gets UNKNOWN
// with the reason LEASE_LOST.
//
// UnaryServerInterceptor panics if l is nil, if key is the zero Key, if key has SharedWhen
// and there is no core.WithWait above 0, if key has Permits or Shared and an option
// excludes them (see core.WithPermits), or if an option is invalid, has no effect on its
// calls or belongs to another adapter. The interceptor is safe for concurrent use.
func UnaryServerInterceptor(l *core.Locker, key Key, opts ...core.Option) grpc.UnaryServerInterceptor {
	c := lockOf("UnaryServerInterceptor", l, key, opts)
	c.locksUnary()
	return c.unary
}

// unary runs a unary call under its lock.
func (c *config) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	c.warnOfUnlocked()
	call := NewCall(ctx, info.FullMethod, req)
	entry, err := c.lock.Enter(ctx, call)
	defer entry.Leave()
	if err != nil {
		return nil, c.refuse(ctx, entry, call, err)
	}
	return c.runLocked(ctx, entry, req, handler)
}

// runLocked runs the handler of a unary call that has entered an interceptor.
func (c *config) runLocked(ctx context.Context, entry adapter.Entry, req any, handler grpc.UnaryHandler) (any, error) {
	reply, err := handler(entry.Context(), req) //nolint:contextcheck // derived from ctx
	err = c.rpc.Returned(entry, err)
	pushBack(ctx, entry, err)
	return reply, err
}

// StreamServerInterceptor is UnaryServerInterceptor for streams. The lock is
// held until the handler of the stream ends. ServerOptions makes both interceptors.
//
// The key is read when the stream opens. If it does not need the message, the lock is
// taken before the handler runs. Otherwise the key is read again, and the lock taken,
// when the handler receives the first message. In a server stream, generated code
// receives it before the handler runs. If a handler sends messages or headers before it
// has received the first message, the stream ends with INTERNAL. The client gets the
// refusal, whatever the handler returns after it. If an outer interceptor of this package
// waits for the first message, the inner one waits for it too, so that locks are taken
// from the outside inwards.
//
// A stream that ends without a message has a key only if the key needs no message:
// core.First skips keys that need one.
func StreamServerInterceptor(l *core.Locker, key Key, opts ...core.Option) grpc.StreamServerInterceptor {
	c := lockOf("StreamServerInterceptor", l, key, opts)
	c.locksStreams()
	return c.stream
}

// stream runs a stream under its lock.
func (c *config) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	c.warnOfUnlocked()
	ctx := ss.Context()
	opening := newOpening(ctx, info.FullMethod)
	if adapter.IsLate(ctx) { // the outer interceptor takes its lock first
		return c.late(srv, ss, opening, handler)
	}
	entry, entered, err := c.lock.EnterUnless(ctx, opening, &opening.needsMessage)
	switch {
	case err != nil:
		return c.refuse(ctx, entry, opening, err)
	case !entered:
		return c.late(srv, ss, opening, handler) // reads the key again, with the first message
	}
	defer entry.Leave()
	err = c.rpc.Returned(entry, handler(srv, &lockedStream{ss, entry.Context()}))
	pushBack(ctx, entry, err)
	return err
}

// lockedStream is a stream that has its lock from the beginning.
type lockedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context returns the context that carries the lease.
func (s *lockedStream) Context() context.Context { return s.ctx }

// ServerOptions returns the options of a server that runs its unary calls and its streams
// under a lock: a UnaryServerInterceptor and a StreamServerInterceptor with the same
// arguments. Use it instead of the two, so that no kind of call runs without a lock:
//
//	grpc.NewServer(grpclock.ServerOptions(locks, key)...)
//
// The interceptors run behind the interceptors of the options before them. Put the
// interceptors that can refuse a call there:
//
//	options := []grpc.ServerOption{grpc.ChainUnaryInterceptor(auth), grpc.ChainStreamInterceptor(authStream)}
//	grpc.NewServer(append(options, grpclock.ServerOptions(locks, key)...)...)
//
// ServerOptions panics where UnaryServerInterceptor does.
func ServerOptions(l *core.Locker, key Key, opts ...core.Option) []grpc.ServerOption {
	c := lockOf("ServerOptions", l, key, opts)
	c.locksUnary()
	c.locksStreams()
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(c.unary), grpc.ChainStreamInterceptor(c.stream)}
}

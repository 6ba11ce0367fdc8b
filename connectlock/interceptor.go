package connectlock

import (
	"context"

	"connectrpc.com/connect"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/core"
)

// Interceptor runs the calls of handlers under a lock, unary calls and streams alike. key chooses the
// lock: calls with the same key run one at a time, in all processes that use the same Redis. The
// options are options of core, which are passed to l.With, and options of this package. A client with
// the interceptor sends its calls as without it.
//
// Without core.WithWait a call is refused at once if another call holds its lock, as ErrorOf
// describes. The handler finds the lease in its context, which is cancelled if the lease is lost. The
// lock is freed when the handler returns, panics or ends its goroutine, and not before, even if the
// client disconnects. If the handler returns the cause with which its lease has ended, or the error of
// its context, the client gets UNKNOWN with the reason LEASE_LOST.
//
// The key of a stream is read when the stream opens. If it does not need the message, the lock is
// taken before the handler runs. Otherwise the key is read again, and the lock taken, when the handler
// receives the first message: see "Streams" in the package comment.
//
// Interceptor panics if l is nil, if key is the zero Key, if key has SharedWhen and there is no
// core.WithWait above 0, if key has Permits or Shared and an option excludes them (see
// core.WithPermits), or if an option is invalid, has no effect on its calls or belongs to another
// adapter. The interceptor is safe for concurrent use.
func Interceptor(l *core.Locker, key Key, opts ...core.Option) connect.Interceptor {
	lock := adapter.Must(adapter.NewLockRPC(self, "Interceptor", l, key, opts))
	if !isDeclared(lock.Locker()) {
		for _, m := range protomsg.MethodsOf(key) {
			m.NoteUnary() // for InCode
		}
	}
	i := &locking{refuser: refuserOf(lock.Locker()), lock: lock}
	i.refused = func(call *Call, err error) error { return i.refusalOf(call, err) }
	return i
}

// isDeclared reports whether an interceptor is that of a method whose rules a .proto file declares.
func isDeclared(l *core.Locker) bool {
	declared, _ := protomsg.Declared(self).Value(l)
	return declared
}

// locking is an Interceptor.
type locking struct {
	refuser
	lock    *adapter.Lock[*Call]
	refused func(*Call, error) error // refusalOf, for streams
}

// WrapUnary runs unary calls of a handler under their locks.
func (i *locking) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		call := NewCall(ctx, req.Spec(), req.Peer(), req.Header(), req.Any())
		entry, err := i.lock.Enter(ctx, call)
		defer entry.Leave()
		if err != nil {
			return nil, i.refuse(entry, call, err)
		}
		return i.run(entry, req, next) //nolint:contextcheck // derived from ctx
	}
}

// run runs the handler of a unary call that has entered an interceptor.
func (r refuser) run(entry adapter.Entry, req connect.AnyRequest, next connect.UnaryFunc) (connect.AnyResponse, error) {
	reply, err := next(entry.Context(), req)
	return reply, r.rpc.Returned(entry, err)
}

// WrapStreamingClient does nothing.
func (i *locking) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler runs the streams of a handler under their locks.
func (i *locking) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		opening := NewCall(ctx, conn.Spec(), conn.Peer(), conn.RequestHeader(), nil)
		opening.opening = true
		if adapter.IsLate(ctx) { // the outer interceptor takes its lock first
			return i.late(ctx, opening, conn, next)
		}
		entry, entered, err := i.lock.EnterUnless(ctx, opening, &opening.needsMessage)
		switch {
		case err != nil:
			return i.refuse(entry, opening, err)
		case !entered:
			return i.late(ctx, opening, conn, next) // reads the key again, with the first message
		}
		defer entry.Leave()
		return i.rpc.Returned(entry, next(entry.Context(), conn)) //nolint:contextcheck // derived from ctx
	}
}

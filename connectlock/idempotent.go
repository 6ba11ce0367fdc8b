package connectlock

import (
	"cmp"
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/core"
)

// IdempotentInterceptor runs a unary call once for its key: the first call runs, and its copies get
// the first answer. See "Idempotent calls" in the package comment. It does not affect streams, nor the
// calls of a client.
//
// The keys of two methods are independent. Join the key with the user, see IdempotencyKey. A call
// without a key is refused with INVALID_ARGUMENT, unless core.WithOptionalKey allows it. If the key
// returns core.ErrSkip, as the key of a ByMethod does for methods that are not listed, the call runs
// as without the interceptor.
//
// The options are options of core, which are passed to l.With, and options of this package. While the
// first call runs, a copy is refused with ABORTED and a RetryInfo, or waits for the answer with
// core.WithWait. A call with the same key and another message is refused with FAILED_PRECONDITION
// (MISMATCH). A copy is refused with FAILED_PRECONDITION (OUTCOME_UNKNOWN) if the process of the first
// call died, see core.WithRerunUnknown; with ALREADY_EXISTS (COMPLETED_UNREPLAYABLE) if the answer was
// not stored; and with UNAVAILABLE if Redis is unavailable.
//
// The handler goes on if its client leaves, or after the deadline of the call: see
// core.WithClientCancel.
//
// IdempotentInterceptor panics if key is the zero Key, several keys (core.All), a key with Permits,
// Shared or SharedWhen, or a ByMethod with a stream. It also panics if l is nil or from
// core.NewQuorum, if l, with the options, runs calls without Redis (core.WithFailOpen) or shares its
// locks (core.WithPermits and core.WithShared), or if an option is invalid, has no effect on its calls
// or belongs to another adapter. The interceptor is safe for concurrent use.
func IdempotentInterceptor(l *core.Locker, key Key, opts ...core.Option) connect.Interceptor {
	once := adapter.Must(adapter.NewIdempotentRPC(self, "IdempotentInterceptor", l, key, rpc(), opts))
	if isDeclared(once.Locker()) {
		once.RequireKey()
	} else {
		for _, m := range protomsg.MethodsOf(key) {
			for _, stream := range m.Streams {
				panic(self.Errorf("IdempotentInterceptor: ByMethod lists %s, and streams are not idempotent: leave it out", stream))
			}
		}
	}
	of := refuserOf(once.Locker())
	return connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			if req.Spec().IsClient {
				return next(ctx, req)
			}
			return of.once(ctx, once, req, next)
		}
	})
}

// once runs a unary call once for its key.
func (r refuser) once(
	ctx context.Context, once *adapter.IdempotentRPC[*Call], req connect.AnyRequest, next connect.UnaryFunc,
) (reply connect.AnyResponse, err error) {
	call := NewCall(ctx, req.Spec(), req.Peer(), req.Header(), req.Any())
	entry, exchange, err := once.Begin(ctx, call)
	defer entry.Leave()
	switch {
	case err != nil:
		return nil, r.refuse(entry, call, err)
	case exchange == nil:
		return r.run(entry, req, next) //nolint:contextcheck // derived from ctx
	}
	if stored, ok := exchange.Replayed(); ok {
		reply, err = replay(ctx, call, stored)
		if reply == nil && coded(err) == nil { // nobody can read it
			err = r.refuse(entry, call, err)
		}
		return reply, err
	}
	before := sideOf(ctx)
	err = exchange.Run(func(ctx context.Context) error {
		reply, err = next(ctx, req)
		return err
	}, func(err error) (adapter.RPCAnswer, bool) { return answerOf(reply, err, sideOf(ctx).since(before)) })
	return reply, err
}

// rpc returns how calls and their errors are read.
func rpc() adapter.RPC[*Call] {
	return adapter.RPC[*Call]{
		Method:      (*Call).procedure,
		Header:      func(c *Call, name string) []string { return c.header[http.CanonicalHeaderKey(name)] },
		Fingerprint: calls().Fingerprint,
		Code: func(err error) (code uint32, ok bool) {
			own := coded(err)
			if own == nil {
				return 0, false
			}
			return uint32(own.Code()), true
		},
		Reason: func(err error) string {
			own := coded(err)
			if own == nil {
				return ""
			}
			return reasonIn(own)
		},
		Refuse:  func(why, cause error) error { return &refusal{ErrorOf(why), cause} },
		Implied: func(err error) uint32 { return cmp.Or(uint32(sent(err).Code()), uint32(connect.CodeUnknown)) },
		Stored:  storedOf,
		Unknown: unknownOf,
	}
}

// A Failure is how the handler of an idempotent call failed: see WithUnknown.
type Failure struct {
	// Code is the code that is sent, as for WithStored. It is UNKNOWN if the handler panicked.
	Code connect.Code
	// Panic is true if the handler panicked or ended its goroutine.
	Panic bool
	// Err is the error that the handler returned. It is nil if the handler panicked.
	Err error
}

// WithUnknown sets which failures leave the outcome of a call unknown, so that copies are refused with
// core.ErrOutcomeUnknown. The default is a panic, an error that is or wraps a timeout, and all codes
// that are not stored by default except PERMISSION_DENIED, ABORTED and UNAUTHENTICATED, unless
// WithStored stores them. All others free the key or are stored: see WithStored.
// core.WithRerunUnknown can let copies run instead.
//
// unknown is called for a handler that has decided nothing (core.Attempt.Decide), and that has panicked
// or returned an error. It is not called if the call ends with the refusal of an interceptor of this
// package behind this one, unless the call has run as well. unknown must be safe for concurrent use. If
// unknown panics, the outcome is unknown.
//
// A nil unknown panics. WithUnknown is an option only for IdempotentInterceptor. It and
// core.WithFreeOnFailure are one setting: the later of the two counts.
func WithUnknown(unknown func(f Failure) bool) core.Option {
	return unknownSetting.Option(unknown)
}

// WithStored sets which answers are stored, by their code, which is 0 for a success. An answer that is
// not stored frees the key, so that the next call with the key runs. Exception: the answers of
// WithUnknown, which is asked first. The default stores successes, INVALID_ARGUMENT, NOT_FOUND,
// ALREADY_EXISTS, FAILED_PRECONDITION, OUT_OF_RANGE and UNIMPLEMENTED. The code is the one that is
// sent: an error without one is UNKNOWN, and the end of a context or of a connection is CANCELED or
// DEADLINE_EXCEEDED.
//
// A refusal by an interceptor of this package behind this one, with which the call ends, is not
// stored. A handler can decide otherwise, see core.Attempt.Decide. stored must be safe for concurrent
// use. If stored panics, the outcome is unknown.
//
// A nil stored panics. WithStored is an option only for IdempotentInterceptor.
func WithStored(stored func(connect.Code) bool) core.Option {
	return storedSetting.Option(stored)
}

// The settings of WithUnknown and WithStored.
var (
	unknownSetting = adapter.NewSetting[func(Failure) bool](self, "WithUnknown", adapter.ForIdempotent)
	storedSetting  = adapter.NewSetting[func(connect.Code) bool](self, "WithStored", adapter.ForIdempotent)
)

// unknownOf returns the function of WithUnknown, or nil.
func unknownOf(l *core.Locker) func(adapter.RPCFailure) bool {
	unknown, isSet := unknownSetting.Value(l)
	if !isSet {
		return nil
	}
	return func(f adapter.RPCFailure) bool { return unknown(Failure{connect.Code(f.Code), f.Panic, f.Err}) }
}

// storedOf returns the function of WithStored, or nil.
func storedOf(l *core.Locker) func(code uint32) bool {
	stored, isSet := storedSetting.Value(l)
	if !isSet {
		return nil
	}
	return func(code uint32) bool { return stored(connect.Code(code)) }
}

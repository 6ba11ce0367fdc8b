package grpclock

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
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

// A Failure is how the handler of an idempotent call failed: see WithUnknown.
type Failure struct {
	// Code is the code that is sent, as for WithStored. It is UNKNOWN if the handler
	// panicked.
	Code codes.Code
	// Panic is true if the handler panicked or ended its goroutine.
	Panic bool
	// Err is the error that the handler returned. It is nil if the handler panicked.
	Err error
}

// WithUnknown sets which failures leave the outcome of a call unknown, so that copies
// are refused with core.ErrOutcomeUnknown. The default is a panic, an error that is or wraps
// a timeout, and all codes that are not stored by default except
// PERMISSION_DENIED, ABORTED and UNAUTHENTICATED, unless WithStored stores them. All
// others free the key or are stored: see WithStored. core.WithRerunUnknown can let copies
// run instead.
//
// unknown is called for a handler that has decided nothing (core.Attempt.Decide), and
// that has panicked or returned another code than OK. It is not called if the call ends
// with the refusal of an interceptor of this package behind this one, unless the call has
// run as well. unknown must be safe for concurrent use. If unknown panics, the outcome
// is unknown.
//
// A nil unknown panics. WithUnknown is an option only for
// IdempotentUnaryServerInterceptor. It and core.WithFreeOnFailure are one setting: the later of
// the two counts.
func WithUnknown(unknown func(f Failure) bool) core.Option {
	return unknownSetting.Option(unknown)
}

// WithStored sets which answers are stored, by their code. An answer that is not
// stored frees the key, so that the next call with the key runs. Exception: the answers
// of WithUnknown, which is asked first. The default stores OK, INVALID_ARGUMENT,
// NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION, OUT_OF_RANGE and UNIMPLEMENTED. The
// code is the one that is sent: an error without a status is UNKNOWN, and the end of a
// context is CANCELED or DEADLINE_EXCEEDED.
//
// A refusal by an interceptor of this package behind this one, with which the call ends,
// is not stored. A handler can decide otherwise, see core.Attempt.Decide. stored must be
// safe for concurrent use. If stored panics, the outcome is unknown.
//
// A nil stored panics. WithStored is an option only for
// IdempotentUnaryServerInterceptor.
func WithStored(stored func(codes.Code) bool) core.Option {
	return storedSetting.Option(stored)
}

// The settings of WithUnknown and WithStored.
var (
	unknownSetting = adapter.NewSetting[func(Failure) bool](self, "WithUnknown", adapter.ForIdempotent)
	storedSetting  = adapter.NewSetting[func(codes.Code) bool](self, "WithStored", adapter.ForIdempotent)
)

// unknownOf returns the function of WithUnknown, or nil.
func unknownOf(l *core.Locker) func(adapter.RPCFailure) bool {
	unknown, isSet := unknownSetting.Value(l)
	if !isSet {
		return nil
	}
	return func(f adapter.RPCFailure) bool { return unknown(Failure{codes.Code(f.Code), f.Panic, f.Err}) }
}

// storedOf returns the function of WithStored, or nil.
func storedOf(l *core.Locker) func(code uint32) bool {
	stored, isSet := storedSetting.Value(l)
	if !isSet {
		return nil
	}
	return func(code uint32) bool { return stored(codes.Code(code)) }
}

package protolock

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// ServerOptions returns the options of a server that runs its calls by the rules: all interceptors
// of Rules, in their order. Like grpclock.ServerOptions, it adds them behind the interceptors
// of the options before.
//
// The options of this method apply to all interceptors. Give an option that only one of them
// accepts to the Locker:
//
//	rules.ServerOptions(locks.With(grpclock.WithStored(stored)))
//
// It panics where they do.
func (r *Rules) ServerOptions(l *core.Locker, opts ...core.Option) []grpc.ServerOption {
	var unary []grpc.UnaryServerInterceptor
	if slices.ContainsFunc(r.methods, protomsg.Rule[*grpclock.Call].IsIdempotent) {
		unary = append(unary, r.IdempotentUnaryServerInterceptor(l, opts...))
	}
	unary = append(unary, r.UnaryServerInterceptor(l, opts...))
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(unary...), grpc.ChainStreamInterceptor(r.StreamServerInterceptor(l, opts...))}
}

// UnaryServerInterceptor returns the interceptor that runs unary calls under the locks of their
// methods. It is a grpclock.UnaryServerInterceptor for each method, with the same options. Wait and
// TTL of a rule, or else of its service, have precedence over those of the options.
//
// It panics where grpclock.UnaryServerInterceptor does, and if l or an option shares locks
// (core.WithPermits and core.WithShared), because the rules say which locks are shared. It also
// panics if a lock has permits or is shared, and l or an option does not allow that: see
// core.WithPermits.
func (r *Rules) UnaryServerInterceptor(l *core.Locker, opts ...core.Option) grpc.UnaryServerInterceptor {
	interceptors := ofLocks(r, unaryName, l, opts, grpclock.UnaryServerInterceptor)
	r.made.unary.Store(true)
	return r.byMethod(l, interceptors)
}

// StreamServerInterceptor is UnaryServerInterceptor for streams: a grpclock.StreamServerInterceptor
// for each method.
func (r *Rules) StreamServerInterceptor(l *core.Locker, opts ...core.Option) grpc.StreamServerInterceptor {
	interceptors := ofLocks(r, streamName, l, opts, grpclock.StreamServerInterceptor)
	r.made.stream.Store(true)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		r.warnOfMissing(l)
		if interceptor, ok := interceptors[info.FullMethod]; ok {
			return interceptor(srv, ss, info, handler)
		}
		return handler(srv, ss)
	}
}

// IdempotentUnaryServerInterceptor returns the interceptor that runs idempotent calls once for their
// key. It is a grpclock.IdempotentUnaryServerInterceptor for each method that declares so, with the
// same options except core.WithOptionalKey: the rule itself says whether its key is optional, and
// the interceptor ignores the option if l has it. Put it before UnaryServerInterceptor. It panics
// where UnaryServerInterceptor does, and if a method is idempotent and l runs calls without Redis
// (core.WithFailOpen) or is from core.NewQuorum.
func (r *Rules) IdempotentUnaryServerInterceptor(l *core.Locker, opts ...core.Option) grpc.UnaryServerInterceptor {
	interceptors := ofIdempotent(r, l, opts)
	r.made.idempotent.Store(true)
	return r.byMethod(l, interceptors)
}

// byMethod returns the interceptor that runs each call by that of its method, if there is one. The
// names of the map are full methods.
func (r *Rules) byMethod(l *core.Locker, interceptors map[string]grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		r.warnOfMissing(l)
		if interceptor, ok := interceptors[info.FullMethod]; ok {
			return interceptor(ctx, req, info, handler)
		}
		return handler(ctx, req)
	}
}

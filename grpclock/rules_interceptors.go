package grpclock

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/annotated"
	"github.com/reqlock/reqlock/internal/bridge"
)

// ServerOptions returns the options of a server that runs its calls by the rules: all interceptors
// of Rules, in their order. Like the function ServerOptions, it adds them behind the interceptors
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
	if slices.ContainsFunc(r.methods, func(m *annotated.Method) bool { return m.Idempotent != nil }) {
		unary = append(unary, r.Idempotent(l, opts...))
	}
	unary = append(unary, r.Unary(l, opts...))
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(unary...), grpc.ChainStreamInterceptor(r.Stream(l, opts...))}
}

// Unary returns the interceptor that runs unary calls under the locks of their methods. It is a
// UnaryServerInterceptor for each method, with the same options. Wait and TTL of a rule, or else of
// its service, have precedence over those of the options.
//
// It panics where UnaryServerInterceptor does, and if l or an option shares locks (core.WithPermits
// and core.WithShared), because the rules say which locks are shared. It also panics if a lock has
// permits or is shared, and l or an option does not allow that: see core.WithPermits.
func (r *Rules) Unary(l *core.Locker, opts ...core.Option) grpc.UnaryServerInterceptor {
	configs := r.lockConfigs("Rules.Unary", l, opts, false)
	r.made.unary.Store(true)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		r.warnOfMissing(l)
		if c, ok := configs[info.FullMethod]; ok {
			return c.unary(ctx, req, info, handler)
		}
		return handler(ctx, req)
	}
}

// Stream is Unary for streams: a StreamServerInterceptor for each method.
func (r *Rules) Stream(l *core.Locker, opts ...core.Option) grpc.StreamServerInterceptor {
	configs := r.lockConfigs("Rules.Stream", l, opts, true)
	r.made.stream.Store(true)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		r.warnOfMissing(l)
		if c, ok := configs[info.FullMethod]; ok {
			return c.stream(srv, ss, info, handler)
		}
		return handler(srv, ss)
	}
}

// Idempotent returns the interceptor that runs idempotent calls once for their key. It is an
// IdempotentUnaryServerInterceptor for each method that declares so, with the same options except
// core.WithOptionalKey, which the rule itself says. Put it before Unary. It panics where Unary does,
// and if a method is idempotent and l runs calls without Redis (core.WithFailOpen) or is from
// core.NewQuorum.
func (r *Rules) Idempotent(l *core.Locker, opts ...core.Option) grpc.UnaryServerInterceptor {
	const name = "Rules.Idempotent"
	registration.Must(self, l != nil, name+" needs a locker")
	isOptional := func(opt core.Option) bool { return bridge.NameOf(opt) == "WithOptionalKey" }
	registration.Must(self, !slices.ContainsFunc(opts, isOptional), name+": WithOptionalKey: write optional in the rules instead")
	configs := make(map[string]*config)
	for _, m := range r.methods {
		rule := m.Idempotent
		if rule == nil {
			continue
		}
		mustAllow(l, m, "idempotent", rule.Settings.Options())
		c := idempotentOf(name, l, annotated.IdempotencyKey(rule, r.partsOf(m)), withSettings(opts, rule.Settings))
		c.optional = nil // the rule says it, and not the Locker
		if rule.Optional {
			c.optional = hasNoneOf(rule.ClientParts(), m)
		}
		c.byMethods = nil
		configs[m.FullMethod()] = c
	}
	r.made.idempotent.Store(true)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		r.warnOfMissing(l)
		if c, ok := configs[info.FullMethod]; ok {
			return c.idempotent(ctx, req, info, handler)
		}
		return handler(ctx, req)
	}
}

// lockConfigs returns the configurations of the methods with locks, by their full names: those of
// streams, or of unary methods.
func (r *Rules) lockConfigs(name string, l *core.Locker, opts []core.Option, streams bool) map[string]*config {
	registration.Must(self, l != nil, name+" needs a locker")
	configs := make(map[string]*config)
	for _, m := range r.methods {
		if len(m.Locks) == 0 || m.IsStream() != streams {
			continue
		}
		mustAllow(l, m, "lock 1", m.LockSettings.Options())
		c := lockOf(name, l, r.lockKey(m), withSettings(opts, m.LockSettings))
		registration.Must(self, !bridge.FactsOf(c.locks).SharesLocks, name+": WithPermits and WithShared: write permits or shared in the rules instead")
		for i, lock := range m.Locks {
			mustAllow(c.locks, m, fmt.Sprintf("lock %d", i+1), lock.Options())
		}
		c.byMethods = nil // Rules report their methods by themselves
		configs[m.FullMethod()] = c
	}
	return configs
}

// mustAllow panics, and says where the rule stands, if a locker excludes its options.
func mustAllow(l *core.Locker, m *annotated.Method, where string, options []core.Option) {
	if err := m.Fault(where, adapter.CheckOptions(l, options...)); err != nil {
		panic(err)
	}
}

// withSettings returns options, and behind them those of a rule, which have precedence.
func withSettings(opts []core.Option, settings annotated.Settings) []core.Option {
	return slices.Concat(opts, settings.Options())
}

package protolock

import (
	"fmt"
	"slices"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/internal/annotated"
)

// The names of the interceptors in errors.
const (
	unaryName      = "Rules.UnaryServerInterceptor"
	streamName     = "Rules.StreamServerInterceptor"
	idempotentName = "Rules.IdempotentUnaryServerInterceptor"
)

// ofLocks makes an interceptor for each method with locks, by the function of grpclock: for each
// stream, or for each unary method, as the name says.
func ofLocks[I any](
	r *Rules, name string, l *core.Locker, opts []core.Option, interceptor func(*core.Locker, grpclock.Key, ...core.Option) I,
) map[string]I {
	panicUnless(l != nil, name+" needs a locker")
	l = adapter.NoteCaller(l)
	made := make(map[string]I)
	for _, m := range r.methods {
		if len(m.Locks) == 0 || m.IsStream() != (name == streamName) {
			continue
		}
		mustAllow(l, m, "lock 1", m.LockSettings.Options())
		options := withSettings(opts, m.LockSettings)
		made[m.FullMethod()] = interceptor(l, r.lockKey(m), options...)
		view := l.With(options...)
		panicIf(name, annotated.CheckLocker(view))
		for i, lock := range m.Locks {
			mustAllow(view, m, fmt.Sprintf("lock %d", i+1), lock.Options())
		}
	}
	return made
}

// ofIdempotent makes an interceptor for each idempotent method.
func ofIdempotent(r *Rules, l *core.Locker, opts []core.Option) map[string]grpc.UnaryServerInterceptor {
	panicUnless(l != nil, idempotentName+" needs a locker")
	l = adapter.NoteCaller(l)
	panicIf(idempotentName, annotated.CheckIdempotent(opts))
	made := make(map[string]grpc.UnaryServerInterceptor)
	for _, m := range r.methods {
		if rule := m.Idempotent; rule != nil {
			mustAllow(l, m, "idempotent", rule.Settings.Options())
			made[m.FullMethod()] = grpclock.IdempotentUnaryServerInterceptor(l, r.idempotencyKey(m), withSettings(opts, rule.Settings)...)
		}
	}
	return made
}

// withSettings returns the options of an interceptor for one method: those of the caller, and behind
// them the settings of its rule, which have precedence.
func withSettings(opts []core.Option, settings annotated.Settings) []core.Option {
	return slices.Concat(opts, settings.Options(), []core.Option{protomsg.Declared.Option(true)})
}

// mustAllow panics, and says where the rule stands, if a locker excludes its options.
func mustAllow(l *core.Locker, m *annotated.Method, where string, options []core.Option) {
	if err := m.Fault(where, adapter.CheckOptions(l, options...)); err != nil {
		panic(err)
	}
}

// panicIf panics with the error of an interceptor, if there is one.
func panicIf(interceptor string, err error) {
	if err != nil {
		panic(self.Errorf("%s: %w", interceptor, err))
	}
}

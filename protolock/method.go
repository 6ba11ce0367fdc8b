package protolock

import (
	"slices"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
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
	self.Require(l != nil, name+" needs a locker")
	l = adapter.NoteCaller(l)
	made := make(map[string]I)
	for _, m := range r.methods {
		if !m.HasLock() || m.IsStream() != (name == streamName) {
			continue
		}
		key, settings, err := m.Lock(l)
		panicIf(err)
		options := withSettings(opts, settings)
		view := l.With(options...)
		panicIn(name, protomsg.CheckLocker(view))
		panicIf(m.CheckLock(view)) // before the interceptor, which refuses the same and does not name the rule
		made[m.FullMethod()] = interceptor(l, key, options...)
	}
	return made
}

// ofIdempotent makes an interceptor for each idempotent method.
func ofIdempotent(r *Rules, l *core.Locker, opts []core.Option) map[string]grpc.UnaryServerInterceptor {
	self.Require(l != nil, idempotentName+" needs a locker")
	l = adapter.NoteCaller(l)
	panicIn(idempotentName, protomsg.CheckIdempotentOptions(opts))
	made := make(map[string]grpc.UnaryServerInterceptor)
	for _, m := range r.methods {
		if !m.IsIdempotent() {
			continue
		}
		key, settings, err := m.Idempotent(l)
		panicIf(err)
		made[m.FullMethod()] = grpclock.IdempotentUnaryServerInterceptor(l, key, withSettings(opts, settings)...)
	}
	return made
}

// withSettings returns the options of an interceptor for one method: those of the caller, and behind
// them the settings of its rule, which have precedence.
func withSettings(opts, settings []core.Option) []core.Option {
	return slices.Concat(opts, settings, []core.Option{protomsg.Declared("grpclock").Option(true)})
}

// panicIf panics with an error, if there is one.
func panicIf(err error) {
	if err != nil {
		panic(err)
	}
}

// panicIn is panicIf with the name of an interceptor.
func panicIn(interceptor string, err error) {
	if err != nil {
		panic(self.Errorf("%s: %w", interceptor, err))
	}
}

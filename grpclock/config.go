package grpclock

import (
	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/core"
)

// config holds the settings of an interceptor.
type config struct {
	rpc     adapter.RPC[*Call]
	lock    *adapter.Lock[*Call]          // nil for an interceptor of idempotent calls
	once    *adapter.IdempotentRPC[*Call] // nil for an interceptor that only locks
	onError func(*Call, error) error      // nil means StatusOf
	refused func(*Call, error) error      // refusalOf, for streams
	unlocked
}

// configOf returns the settings of an interceptor. l has its options.
func configOf(l *core.Locker, key Key) *config {
	c := &config{rpc: rpc(), unlocked: unlocked{locks: l}}
	c.onError, _ = errorHandler.Value(l)
	c.refused = func(call *Call, err error) error { return c.refusalOf(call, err) }
	if declared, _ := protomsg.Declared(self).Value(l); !declared {
		c.byMethods = protomsg.MethodsOf(key)
	}
	return c
}

// lockOf returns the settings of an interceptor that only locks. It panics if an argument of the
// interceptor is wrong.
func lockOf(interceptor string, l *core.Locker, key Key, opts []core.Option) *config {
	lock := adapter.Must(adapter.NewLockRPC(self, interceptor, l, key, opts))
	c := configOf(lock.Locker(), key)
	c.lock = lock
	return c
}

// idempotentOf is lockOf for an interceptor of idempotent calls.
func idempotentOf(interceptor string, l *core.Locker, key Key, opts []core.Option) *config {
	once := adapter.Must(adapter.NewIdempotentRPC(self, interceptor, l, key, rpc(), opts))
	c := configOf(once.Locker(), key)
	if declared, _ := protomsg.Declared(self).Value(once.Locker()); declared {
		once.RequireKey()
	}
	c.once, c.unaryOnly = once, true
	return c
}

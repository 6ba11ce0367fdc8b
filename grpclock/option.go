package grpclock

import (
	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/core"
)

// self is the name of this package in errors.
const self = adapter.Name("grpclock")

// WithErrorHandler sets the function that chooses the status of calls that do not
// run: StatusOf if not set. handle gets the error of core.Enter or Locker.Begin, and
// returns the status error to send. Use core.RefusalOf or errors.Is to find the
// meaning of err; its text is not for clients.
//
// A status that handle wraps together with err, as fmt.Errorf("%w: %w", status, err)
// does, is sent too, without the text around it. A call that did not run does not get
// a success by mistake: if handle returns nil, a status OK, or an error without a
// status of its own, such as err itself, the status is StatusOf(err).
//
// The trailer grpc-retry-pushback-ms has the time of a RetryInfo in the status. Without one
// it has the value of StatusOf(err). If handle sets the trailer itself, its value is sent.
//
// handle is not called for errors that a handler returns. It is not called either if
// the handler of a stream sends or returns before it has received the first message:
// that is always INTERNAL.
func WithErrorHandler(handle func(c *Call, err error) error) core.Option {
	return errorHandler.Option(handle)
}

// errorHandler is the setting of WithErrorHandler.
var errorHandler = adapter.NewSetting[func(c *Call, err error) error](self, "WithErrorHandler", adapter.ForAll)

// config holds the settings of an interceptor.
type config struct {
	rpc     adapter.RPC[*Call]
	lock    *adapter.Lock[*Call]          // nil for an interceptor of idempotent calls
	once    *adapter.IdempotentRPC[*Call] // nil for an interceptor that only locks
	onError func(*Call, error) error      // nil means StatusOf
	unlocked
}

// configOf returns the settings of an interceptor. l has its options.
func configOf(l *core.Locker, key Key) *config {
	c := &config{rpc: rpc(), unlocked: unlocked{locks: l}}
	c.onError, _ = errorHandler.Value(l)
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

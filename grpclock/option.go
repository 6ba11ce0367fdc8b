package grpclock

import (
	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/bridge"
)

// self is the name of this package in errors.
const self = adapter.Name("grpclock")

// Also locks more keys for the same call, such as both accounts of a transfer. The
// call holds all keys. They are taken in a fixed order that does not depend on the
// order of the key functions, so a transfer from a to b and a transfer from b to a do
// not deadlock. One wait covers all keys. Equal keys are locked once. Leases returns
// the lease of each key.
//
// These key functions get the calls of all methods of the interceptor, as its first
// key function does. Give each of them a ByMethod: otherwise a key function gets a
// message of the wrong type and refuses the call. IdempotentUnaryServerInterceptor
// refuses this option. core.Func converts a function of your own that stands beside other
// key functions.
func Also[F ~func(*Call) (K, error), K string | core.RequestKey](keys ...F) core.Option {
	return registration.Also[*Call](self, keys)
}

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
	locks   *core.Locker
	keys    []KeyFunc
	onError func(*Call, error) error // nil means StatusOf
	idempotency
	unlocked
}

// configOf applies the options for the interceptor of that name. It panics if one of them is
// wrong.
func configOf(name string, kind bridge.Middleware, l *core.Locker, key KeyFunc, opts []core.Option) *config {
	l = adapter.Must(registration.View(self, name, kind, l, opts))
	c := &config{locks: l, keys: []KeyFunc{key}}
	c.onError, _ = errorHandler.Value(l)
	return c
}

// completeKeys finds out what the keys read, before the first call.
func (c *config) completeKeys() {
	c.byMethods = byMethodsOf(c.keys)
	for i, key := range c.keys {
		c.keys[i] = failBeforeMessage(key)
	}
}

// lockOf is configOf for an interceptor that only locks. It checks the arguments of the
// interceptor.
func lockOf[K string | core.RequestKey](interceptor string, l *core.Locker, key func(*Call) (K, error), opts []core.Option) *config {
	c := configOf(interceptor, bridge.RPCLock, l, registration.KeyOf(self, interceptor, l, key), opts)
	c.keys = append(c.keys, registration.AlsoOf[*Call](self, c.locks)...)
	c.completeKeys()
	return c
}

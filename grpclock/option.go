package grpclock

import (
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// adapter is the prefix of the panics at registration.
const adapter = registration.Adapter("grpclock")

// An Option is a setting of an interceptor: an option of core, such as core.WithWait,
// or an option of this package. A later option replaces an earlier one.
type Option interface {
	// ReqlockOption marks the options of reqlock and of its adapters, so that one
	// list can contain both. An option of another adapter panics at registration.
	ReqlockOption()
}

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
func Also[F ~func(*Call) (K, error), K string | core.RequestKey](keys ...F) Option {
	more := registration.KeysOf[*Call](adapter, "Also", keys)
	return option("Also", func(c *config) { c.keys = append(c.keys, more...) })
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
func WithErrorHandler(handle func(c *Call, err error) error) Option {
	adapter.Must(handle != nil, "WithErrorHandler needs a function")
	return option("WithErrorHandler", func(c *config) { c.onError = handle })
}

// config holds the settings of an interceptor.
type config struct {
	locks   *core.Locker
	keys    []KeyFunc
	onError func(*Call, error) error // nil means StatusOf
	idempotency
	unlocked
}

// option returns the option of this package with that name.
func option(name string, set func(*config)) Option {
	return registration.NewSetting(adapter, name, set)
}

// configOf applies the options of core and of this package. fits checks those of core.
func configOf(l *core.Locker, key KeyFunc, opts []Option, fits func([]core.Option) []core.Option) *config {
	c := &config{
		keys:        []KeyFunc{key},
		idempotency: idempotency{fingerprint: fingerprintOf, stored: deterministic},
	}
	c.locks = l.With(fits(registration.Apply(adapter, c, opts))...)
	c.byMethods = byMethodsOf(c.keys)
	for i, key := range c.keys {
		c.keys[i] = failBeforeMessage(key)
	}
	return c
}

// lockOf is configOf for an interceptor that only locks. It checks the arguments of the
// interceptor.
func lockOf[K string | core.RequestKey](interceptor string, l *core.Locker, key func(*Call) (K, error), opts []Option) *config {
	fits := func(opts []core.Option) []core.Option { return adapter.ForLocks(interceptor, opts) }
	c := configOf(l, registration.KeyOf(adapter, interceptor, l, key), opts, fits)
	adapter.Must(c.given == "", interceptor+": "+c.given+" is an option of IdempotentUnaryServerInterceptor")
	return c
}

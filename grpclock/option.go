package grpclock

import (
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// adapter is what panics at registration begin with.
const adapter = registration.Adapter("grpclock")

// An Option is a setting of an interceptor: one of core's options, such as
// core.WithWait, or one of this package's. Later ones win over earlier ones.
type Option interface {
	// ReqlockOption marks the options of reqlock and of its adapters, so that
	// one list takes both. Those of another adapter panic at registration.
	ReqlockOption()
}

// Also locks more keys for the same call, such as both accounts of a transfer.
// All keys are taken, in one order whatever the order of the key functions, so
// that a transfer from a to b and one from b to a do not wait for each other;
// all within one wait. Equal keys are locked once.
//
// These key functions see all methods that the interceptor sees, as its own one
// does. Give them a ByMethod of their own, or one reads a message of the wrong
// type and refuses the call.
func Also(keys ...KeyFunc) Option {
	registration.MustBeKeys(adapter, "Also", keys)
	return option(func(c *config) { c.keys = append(c.keys, keys...) })
}

// WithErrorHandler sets what becomes of the calls that get no lock; without it,
// StatusOf says it. handle gets the error as core.Enter returned it, and
// returns the status error to send. Ask core.OutcomeOf what err means, or
// errors.Is; its text is not for clients.
//
// A status that handle puts beside err, as fmt.Errorf("%w: %w", status, err)
// does, is sent too, without the text around it. A call without a lock never
// gets a success by accident: if handle returns nil, a status OK, or an error
// with no status of its own, such as err itself, the answer is that of
// StatusOf(err).
//
// handle is not asked about what a handler returns, nor about the mistakes of
// one that has a stream: to send or to return before the first message is
// INTERNAL whatever handle says.
func WithErrorHandler(handle func(c *Call, err error) error) Option {
	adapter.Must(handle != nil, "WithErrorHandler needs a function")
	return option(func(c *config) { c.onError = handle })
}

// config is what an interceptor is made of.
type config struct {
	locks   *core.Locker
	keys    []KeyFunc
	onError func(*Call, error) error // nil: StatusOf
	idempotency
}

// option is a setting of this package.
type option = registration.Setting[config]

// configOf checks what an interceptor is given, and sorts the options into
// core's and this package's.
func configOf(interceptor string, l *core.Locker, key KeyFunc, opts []Option) *config {
	adapter.Must(l != nil, interceptor+" needs a locker")
	adapter.Must(key != nil, interceptor+" needs a key function")
	c := &config{
		keys:        []KeyFunc{key},
		idempotency: idempotency{fingerprint: fingerprintOf, stored: deterministic},
	}
	c.locks = l.With(registration.Apply(adapter, c, opts)...)
	for i, key := range c.keys {
		c.keys[i] = untilAsked(key)
	}
	return c
}

// lockOf is configOf for an interceptor that locks, and no more.
func lockOf(interceptor string, l *core.Locker, key KeyFunc, opts []Option) *config {
	c := configOf(interceptor, l, key, opts)
	adapter.Must(c.given == "", interceptor+": "+c.given+" is an option of IdempotentUnaryServerInterceptor")
	return c
}

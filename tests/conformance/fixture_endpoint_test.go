package conformance

import (
	"net/http"
	"slices"

	"github.com/reqlock/reqlock/core"
)

// An endpoint is an idempotent endpoint on an HTTP framework, for all methods on two routes.
// From the outside inwards: recovery, outer, Idempotent, inside, the handler.
type endpoint struct {
	recovers bool
	// outer is a middleware of the scenario, or nil. If it returns false, it has answered.
	outer func(w http.ResponseWriter, r *http.Request) bool
	// key is a key of the application. nil is the user's name joined with the
	// adapter's IdempotencyKey.
	key func(r *http.Request) (string, error)
	// named is the name of the key; "" is none.
	named string
	// tenants joins the default key with the adapter's Host.
	tenants bool
	options []core.Option
	own     ownOptions
	// inside is a lock behind an Idempotent that needs no key; nil: neither.
	inside  *lock
	handler func(t invocation)
}

// The routes of an endpoint, as all frameworks write them.
const (
	paymentsPath = "/payments"
	refundsPath  = "/refunds"
)

// ownOptions are options for requests of any framework.
type ownOptions struct {
	methods       []string
	optionalKey   bool
	keyHeaders    []string // of the optional key
	fingerprint   func(r *http.Request) ([]byte, error)
	noFingerprint bool
	maxBody       int64
	uncertain     func(f core.Failure) bool
	freeOnFailure bool
	stored        func(status int) bool
	replayed      []string
}

// An invocation is what the handler of an endpoint gets. The handler writes with the
// framework's own writer.
type invocation struct {
	http.ResponseWriter
	r       *http.Request
	attempt *core.Attempt
	// fail returns an error in the way of the framework's handlers: one with a status, or the bare
	// cause if that is 0.
	fail func(status int, cause error)
	// bare answers with a status only.
	bare func(status int)
}

// idempotency holds what an adapter offers for endpoints with its type of request R.
type idempotency[R any] struct {
	request func(R) *http.Request
	user    core.Key[R]
	tenant  core.Key[R] // user, joined with the host
}

// needless is the option of an Idempotent whose requests need no key.
var needless = core.WithOptionalKey("X-Never")

// key returns the key of an endpoint.
func (a idempotency[R]) key(e endpoint) core.Key[R] {
	if e.named != "" {
		return a.source(e).Named(e.named)
	}
	return a.source(e)
}

// source returns the key of an endpoint, without a name.
func (a idempotency[R]) source(e endpoint) core.Key[R] {
	switch {
	case e.tenants:
		return a.tenant
	case e.key == nil:
		return a.user
	}
	return core.KeyOf(func(r R) (string, error) { return e.key(a.request(r)) })
}

// options returns the options of an endpoint.
func (a idempotency[R]) options(e endpoint) []core.Option {
	options := slices.Clone(e.options)
	if e.own.methods != nil {
		options = append(options, core.WithMethods(e.own.methods...))
	}
	if e.own.optionalKey {
		options = append(options, core.WithOptionalKey(e.own.keyHeaders...))
	}
	if own := e.own.fingerprint; own != nil {
		options = append(options, core.WithFingerprint(func(r R) ([]byte, error) { return own(a.request(r)) }))
	}
	if e.own.noFingerprint {
		options = append(options, core.WithoutFingerprint())
	}
	if e.own.maxBody > 0 {
		options = append(options, core.WithMaxBody(e.own.maxBody))
	}
	if e.own.uncertain != nil {
		options = append(options, core.WithUnknown(e.own.uncertain))
	}
	if e.own.freeOnFailure {
		options = append(options, core.WithFreeOnFailure())
	}
	if e.own.stored != nil {
		options = append(options, core.WithStored(e.own.stored))
	}
	if e.own.replayed != nil {
		options = append(options, core.WithReplayedHeaders(e.own.replayed...))
	}
	return options
}

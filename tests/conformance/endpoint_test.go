package conformance

import (
	"net/http"

	"github.com/reqlock/reqlock/core"
)

// An endpoint is what a scenario serves: an idempotent one on an HTTP framework,
// by all methods on two routes. From the outside inwards: recovery, outer,
// Idempotent, the handler.
type endpoint struct {
	recovers bool
	// outer is a middleware of the scenario; where it returns false, it has
	// answered. nil is none.
	outer func(w http.ResponseWriter, r *http.Request) bool
	// key is a key function of the application; nil is the user's name joined with
	// the adapter's own IdempotencyKey.
	key func(r *http.Request) (string, error)
	// tenants joins the default key with the adapter's own Host.
	tenants bool
	options []core.Option
	own     ownOptions
	handler func(t turn)
}

// The routes of an endpoint, as all frameworks write them.
const (
	paymentsPath = "/payments"
	refundsPath  = "/refunds"
)

// ownOptions are the adapter's own options of an Idempotent.
type ownOptions struct {
	methods       []string
	optionalKey   bool
	keyHeaders    []string // of the optional key
	fingerprint   func(r *http.Request) ([]byte, error)
	noFingerprint bool
	maxBody       int64
	stored        func(status int) bool
	replayed      []string
}

// A turn is what the handler of an endpoint sees of a request. It writes by the
// framework's own writer.
type turn struct {
	http.ResponseWriter
	r       *http.Request
	attempt *core.Attempt
	// fail gives an error the way the framework's handlers do.
	fail func(status int)
	// bare gives a status, and nothing else.
	bare func(status int)
}

// idempotency has the parts of an adapter of which endpoints are made: its
// options O, for requests R.
type idempotency[R, O any] struct {
	request     func(R) *http.Request
	user        core.KeyFunc[R]
	tenant      core.KeyFunc[R] // user, joined with the host
	methods     func(...string) O
	optionalKey func(...string) O
	fingerprint func(func(R) ([]byte, error)) O
	none        func() O
	maxBody     func(int64) O
	stored      func(func(int) bool) O
	replayed    func(...string) O
}

// key makes the key function of an endpoint.
func (a idempotency[R, O]) key(e endpoint) core.KeyFunc[R] {
	switch {
	case e.tenants:
		return a.tenant
	case e.key == nil:
		return a.user
	}
	return func(r R) (string, error) { return e.key(a.request(r)) }
}

// options makes the one list of core's options and the adapter's own.
func (a idempotency[R, O]) options(e endpoint) (options []O) {
	for _, option := range e.options {
		options = append(options, any(option).(O))
	}
	if e.own.methods != nil {
		options = append(options, a.methods(e.own.methods...))
	}
	if e.own.optionalKey {
		options = append(options, a.optionalKey(e.own.keyHeaders...))
	}
	if own := e.own.fingerprint; own != nil {
		options = append(options, a.fingerprint(func(r R) ([]byte, error) { return own(a.request(r)) }))
	}
	if e.own.noFingerprint {
		options = append(options, a.none())
	}
	if e.own.maxBody > 0 {
		options = append(options, a.maxBody(e.own.maxBody))
	}
	if e.own.stored != nil {
		options = append(options, a.stored(e.own.stored))
	}
	if e.own.replayed != nil {
		options = append(options, a.replayed(e.own.replayed...))
	}
	return options
}

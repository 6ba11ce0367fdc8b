package conformance

import (
	"context"
	"slices"

	"github.com/reqlock/reqlock/core"
)

// A route is what a case serves. From the outside inwards: recovery, outer, the group's locks,
// the route's locks, the handler.
type route struct {
	recovers bool        // the framework's recovery is the outermost middleware
	outer    func(frame) // a middleware of the case; nil: none
	group    []lock
	locks    []lock
	handler  func(call) // nil: a request that reaches the handler fails the test
}

// A lock is one middleware of the adapter under test.
type lock struct {
	keys    []key // several are core.All
	options []core.Option
	hook    hook
}

// A key is the source of a lock's key.
type key struct {
	header string                 // read by the adapter's Header or Metadata
	body   bool                   // read by the adapter's JSONField or Field
	user   bool                   // x-second joined with the adapter's IdempotencyKey
	from   func() (string, error) // core.KeyOf of a function of the application
	named  string                 // its name; "": none
	limit  limit                  // noLimit: none
}

// A limit is how several requests hold a key at once.
type limit int

const (
	noLimit      limit = iota
	threePermits       // Permits
	shared             // Shared
	readers            // SharedWhen, for requests with asReader
	reads              // SharedWhen, by the adapter's IsRead
)

// asReader is the x-second of requests that only read.
const asReader = "reader"

// The keys that most cases use.
var (
	byHeader = key{header: "x-key"}
	bySecond = key{header: "x-second"}
	byBody   = key{body: true}
	byUser   = key{user: true}
)

// given returns a key of the application that always returns the same.
func given(text string, err error) key {
	return key{from: func() (string, error) { return text, err }}
}

// A hook is an error handler of a lock.
type hook int

const (
	noHook     hook = iota
	ownHook         // answers with the status framework.hooked and hookText
	silentHook      // answers nothing, or no error
)

// hookText is what ownHook answers.
const hookText = "refused by the application"

// A frame is what a middleware around the locks gets.
type frame interface {
	// Context is the request's current context.
	Context() context.Context
	// SetContext replaces the request's context for the inner handlers.
	SetContext(ctx context.Context)
	// Next calls the inner handlers.
	Next()
}

// A call is what a handler gets, and how it answers.
type call interface {
	Context() context.Context
	// Lease is the adapter's FromContext.
	Lease() (*core.Lease, bool)
	// Leases is the adapter's Leases.
	Leases() []*core.Lease
	// Body is the text in the request.
	Body() (string, error)
	// Reply answers with a success and a text.
	Reply(text string)
	// Refuse answers with a conflict of the handler, in the way in which handlers of the
	// framework return errors.
	Refuse(text string)
	// Send sends a piece of the answer at once.
	Send(piece string) error
	// Hijack takes over the connection and answers with a text.
	Hijack(text string) error
}

// An adapter holds what one adapter offers for routes: keys for its type of request
// R, and its options.
type adapter[R any] struct {
	header      func(name string) core.Key[R]
	idempotency func() core.Key[R]
	body        func() core.Key[R]
	isRead      func(R) bool // nil where methods do not say what reads
	hook        func(hook) core.Option
}

// lockKey returns the key of a middleware.
func (a adapter[R]) lockKey(l lock) core.Key[R] {
	keys := make([]core.Key[R], len(l.keys))
	for i, k := range l.keys {
		keys[i] = a.key(k)
	}
	return core.All(keys...)
}

// key returns a key of the adapter.
func (a adapter[R]) key(k key) core.Key[R] {
	of := a.source(k)
	if k.named != "" {
		of = of.Named(k.named)
	}
	switch k.limit {
	case threePermits:
		return of.Permits(3)
	case shared:
		return of.Shared()
	case readers:
		second := a.header("x-second")
		return of.SharedWhen(func(r R) bool {
			got, err := second.Read(r)
			return err == nil && got.Raw() == asReader
		})
	case reads:
		return of.SharedWhen(a.isRead)
	case noLimit:
	}
	return of
}

// source returns a key of the adapter, without a name and a limit.
func (a adapter[R]) source(k key) core.Key[R] {
	switch {
	case k.from != nil:
		return core.KeyOf(func(R) (string, error) { return k.from() })
	case k.body:
		return a.body()
	case k.user:
		return core.Join(a.header("x-second"), a.idempotency())
	default:
		return a.header(k.header)
	}
}

// options returns one list of core's options and the adapter's own.
func (a adapter[R]) options(l lock) []core.Option {
	options := slices.Clone(l.options)
	if l.hook != noHook {
		options = append(options, a.hook(l.hook))
	}
	return options
}

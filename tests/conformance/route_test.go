package conformance

import (
	"context"

	"github.com/reqlock/reqlock/core"
)

// A route is what a case serves. From the outside inwards: recovery, outer, the
// group's locks, the route's locks, the handler.
type route struct {
	recovers bool        // the framework's recovery stands around all
	outer    func(frame) // a middleware of the case; nil: none
	group    []lock
	locks    []lock
	handler  func(call) // nil: it must not run
}

// A lock is one middleware of the adapter under test.
type lock struct {
	keys    []key // the first is the middleware's own, the others are Also
	options []core.Option
	hook    hook
}

// A key says where a lock's key comes from.
type key struct {
	header string                 // read by the adapter's own Header or Metadata
	body   bool                   // read by the adapter's own JSONField or Field
	limit  int64                  // of the body; 0: the adapter's default
	user   bool                   // x-second joined with the adapter's own IdempotencyKey
	from   func() (string, error) // a key function of the user's own
}

// The keys that most cases use.
var (
	byHeader = key{header: "x-key"}
	bySecond = key{header: "x-second"}
	byBody   = key{body: true}
	byUser   = key{user: true}
)

// given is a key function of the user's own that always returns the same.
func given(text string, err error) key {
	return key{from: func() (string, error) { return text, err }}
}

// A hook is the error handler that a lock is given.
type hook int

const (
	noHook     hook = iota
	ownHook         // answers with the status framework.hooked and hookText
	silentHook      // answers nothing, or no error
)

// hookText is what ownHook answers.
const hookText = "refused by the application"

// A frame is what a middleware around the locks sees of a request.
type frame interface {
	// Context is the request's context as the framework has it now.
	Context() context.Context
	// SetContext gives what is inside another one.
	SetContext(ctx context.Context)
	// Next runs what is inside.
	Next()
}

// A call is what a handler sees of a request, and how it answers.
type call interface {
	Context() context.Context
	// Lease is the adapter's own FromContext.
	Lease() (*core.Lease, bool)
	// Body is the text that the request carries.
	Body() (string, error)
	// Reply is a success with a text.
	Reply(text string)
	// Refuse is the handler's own conflict, given the way the framework's
	// handlers give an error.
	Refuse(text string)
	// Send sends a piece of the answer at once.
	Send(piece string) error
	// Hijack takes the connection over and answers on it with a text.
	Hijack(text string) error
}

// An adapter has the parts of one adapter that routes are made of: its key
// functions on its type of request R, and its options O.
type adapter[R, O any] struct {
	header      func(name string) core.KeyFunc[R]
	idempotency func() core.KeyFunc[R]
	body        func(limit int64) core.KeyFunc[R]
	also        func(keys ...core.KeyFunc[R]) O
	hook        func(hook) O
}

// key makes a key function of the adapter.
func (a adapter[R, O]) key(k key) core.KeyFunc[R] {
	switch {
	case k.from != nil:
		return func(R) (string, error) { return k.from() }
	case k.body:
		return a.body(k.limit)
	case k.user:
		return core.Join(a.header("x-second"), a.idempotency())
	default:
		return a.header(k.header)
	}
}

// options makes the one list of core's options and the adapter's own.
func (a adapter[R, O]) options(l lock) []O {
	var options []O
	for _, option := range l.options {
		options = append(options, any(option).(O))
	}
	for _, k := range l.keys[1:] {
		options = append(options, a.also(a.key(k)))
	}
	if l.hook != noHook {
		options = append(options, a.hook(l.hook))
	}
	return options
}

package conformance

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A framework is one column of the table: an adapter, and how its routes are
// served and asked.
type framework struct {
	name string
	// lacks says why a framework has nothing to which a case could apply.
	lacks map[feature]string
	// serve serves a route until the test is over.
	serve func(t *testing.T, locks *core.Locker, r route) server
	// endpoint makes an idempotent endpoint of an HTTP framework; nil elsewhere.
	endpoint func(locks *core.Locker, e endpoint) http.Handler
	// row says an outcome in the framework's own terms.
	row func(o core.Outcome) verdict
	// forbidden is the answer to a key function that fails with forbidden{}.
	forbidden verdict
	// hooked is the answer of ownHook.
	hooked verdict
	// failure is the error that the framework's own error path holds after
	// frame.Next; nil if errors leave the adapter as answers alone.
	failure func(f frame) error
}

// lack says why a framework has nothing to which a case could apply.
func (f *framework) lack(need feature) (reason string, lacks bool) {
	if need == errorPath && f.failure == nil {
		return "errors leave the adapter as answers alone", true
	}
	reason, lacks = f.lacks[need]
	return reason, lacks
}

// A feature is what a case needs and not all frameworks have.
type feature string

const (
	everywhere feature = ""
	bodyLimits feature = "limits of bodies that a key function reads"
	ownContext feature = "a request that carries its context through the chain"
	aborts     feature = "http.ErrAbortHandler"
	streams    feature = "answers in pieces"
	earlyHint  feature = "informational answers before the answer"
	hijacking  feature = "connections that a handler takes over"
	errorPath  feature = "an error path of the framework beside the answer"
)

// A server serves one route.
type server interface {
	// send makes a request and reads the whole answer.
	send(ctx context.Context, r request) answer
	// open makes a request whose answer comes in pieces.
	open(ctx context.Context, r request) stream
}

// A stream is an answer that is being read.
type stream interface {
	// next returns the next piece.
	next() (string, error)
	// rest reads up to the end, and returns the answer as it is then.
	rest() answer
}

// A request is what a client sends.
type request struct {
	keys   []string // the values of x-key
	marks  []string // the values of idempotency-key
	second string   // that of x-second; "": none
	body   string   // "": none
}

// An answer is what the client got.
type answer struct {
	verdict
	ok   bool   // a success: a 2xx, or OK
	text string // what the handler said
	raw  string // all that the client can read
	err  error  // the connection broke
}

// A verdict is how an answer says what happened, in the framework's own terms.
type verdict struct {
	status     int
	code       string // of a problem document, or the reason of an ErrorInfo
	retryAfter time.Duration
}

// frameworks are the columns of the table.
func frameworks() []*framework {
	return []*framework{
		overNetHTTP(),
		overGin(),
		overEcho(),
		overGRPCUnary(),
		overGRPCStream(),
		overGRPCBidi(),
	}
}

// forbidden is an error of a key function that has a status of its own.
type forbidden struct{}

func (forbidden) Error() string { return "not allowed to " + theKey }

// StatusCode is what HTTP adapters ask for.
func (forbidden) StatusCode() int { return 403 }

package conformance

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A framework is one column of the table: an adapter, and functions that serve its routes and
// send requests.
type framework struct {
	name string
	// lacks maps each feature that the framework does not have to the reason.
	lacks map[feature]string
	// serve serves a route until the test is over.
	serve func(t *testing.T, locks *core.Locker, r route) server
	// endpoint makes an idempotent endpoint of an HTTP framework; nil elsewhere.
	endpoint func(locks *core.Locker, e endpoint) http.Handler
	// row returns the framework's form of an outcome.
	row func(o core.Refusal) outcome
	// forbidden is the answer to a key that fails with forbidden{}.
	forbidden outcome
	// hooked is the answer of ownHook.
	hooked outcome
	// failure returns the error in the framework's error path after frame.Next. It is nil if
	// the adapter reports errors by answers only.
	failure func(f frame) error
}

// lack returns why a case that needs a feature does not apply to the framework.
func (f *framework) lack(need feature) (reason string, lacks bool) {
	if need == errorPath && f.failure == nil {
		return "errors leave the adapter as answers alone", true
	}
	reason, lacks = f.lacks[need]
	return reason, lacks
}

// A feature is what a case needs and some frameworks do not have.
type feature string

const (
	everywhere  feature = ""
	bodyLimits  feature = "limits of bodies that a key reads"
	earlyBodies feature = "a body that a middleware can read before the lock"
	ownContext  feature = "a request that carries its context through the chain"
	aborts      feature = "http.ErrAbortHandler"
	seenAnswers feature = "a writer of the framework that shows whether the handler has answered"
	streams     feature = "answers in pieces"
	earlyHint   feature = "informational answers before the answer"
	hijacking   feature = "connections that a handler takes over"
	writeLimits feature = "an http.Server with timeouts"
	disconnects feature = "a server that detects that a client has disconnected"
	wrapping    feature = "an http.Handler that a case can wrap"
	methods     feature = "methods that say whether a request only reads"
	errorPath   feature = "an error path of the framework beside the answer"

	returnedErrors feature = "handlers that give their framework an error"
)

// A server serves one route.
type server interface {
	// send sends a request and reads the complete answer.
	send(ctx context.Context, r request) answer
	// open sends a request that is answered in pieces.
	open(ctx context.Context, r request) stream
}

// A stream is an answer of which the client reads piece after piece.
type stream interface {
	// next returns the next piece.
	next() (string, error)
	// rest reads until the end, and returns the answer.
	rest() answer
}

// A request is what a client sends.
type request struct {
	keys            []string // the values of x-key
	idempotencyKeys []string // the values of idempotency-key
	second          string   // the value of x-second; "": none
	body            string   // "": none
	reads           bool     // a GET, on HTTP
}

// An answer is what the client gets.
type answer struct {
	outcome
	ok   bool   // a success: a 2xx, or OK
	text string // from the handler
	raw  string // all that the client can read

	first string // of an ErrorInfo: the reference of the first request
	err   error  // the connection broke
}

// An outcome is an answer's status and code, in the framework's form.
type outcome struct {
	status     int
	code       string // of a problem document, or the reason of an ErrorInfo
	retryAfter time.Duration
	pushback   string // of gRPC: the values of grpc-retry-pushback-ms
}

// frameworks are the columns of the table.
func frameworks() []*framework {
	return []*framework{
		overNetHTTP(),
		overGin(),
		overEcho(),
		overEchov5(),
		overFiber(),
		overErrmux(),
		overGRPCUnary(),
		overGRPCStream(),
		overGRPCBidi(),
		overAnnotatedUnary(),
		overAnnotatedBidi(),
		overConnect(),
		overConnectStream(),
		overConnectBidi(),
	}
}

// forbidden is an error of a key that has a status of its own.
type forbidden struct{}

func (forbidden) Error() string { return "not allowed to " + theKey }

// StatusCode is the method by which an error states its status to HTTP adapters.
func (forbidden) StatusCode() int { return 403 }

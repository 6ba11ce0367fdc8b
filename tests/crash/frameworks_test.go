package crash

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A framework serves the service and sends requests to it.
type framework struct {
	// serve serves until stop is called.
	serve func(s *service, l net.Listener) (stop func(context.Context))
	// ask sends a request to the service at an address. An error means that no complete
	// answer came, so the outcome is unknown. The answer is the part that came.
	// became of the question. A part of an answer comes with an error.
	ask func(ctx context.Context, addr string, q request) (answer, error)
	// endpoint returns the key of the attempts.
	endpoint func(policy, key string) string
	// atomic means that a client gets a complete answer or none.
	atomic bool
	// fastCase and the number of a step choose the case of the fast tier: see stepCases.
	fastCase int
	// committed returns the answer in a record.
	committed func(text string) (answer, error)
}

var frameworks = map[string]framework{
	"net/http": {
		serve: serveNetHTTP, ask: askHTTP, committed: decodeHTTP,
		endpoint: func(policy, key string) string { return core.EndpointKey("POST", "POST /"+policy, key) },
	},
	"gin": {
		serve: serveGin, ask: askHTTP, committed: decodeHTTP, fastCase: 2,
		endpoint: func(policy, key string) string { return core.EndpointKey("POST", "/"+policy, key) },
	},
	"grpc": {
		serve: serveGRPC, ask: askGRPC, committed: decodeGRPC, atomic: true, fastCase: 1,
		endpoint: func(policy, key string) string { return core.EndpointKey("", methods[policy], key) },
	},
}

// The policies of the service. Each is also a route.
const (
	reject = "reject"
	rerun  = "rerun"
)

var policies = map[string]core.Policy{reject: core.Reject, rerun: core.Rerun}

// A request is what a client sends.
type request struct {
	policy, key string
	nowait      bool           // the request does not wait
	extra       int            // see payment
	reading     func(read int) // runs when this many bytes of the answer have been read
}

// An answer is what a client got.
type answer struct {
	Process  int    // the process that got the request
	Status   int    // a status of the framework
	Code     string // of the outcome, if the handler did not run
	Location string // a header that belongs to the answer
	Body     string
	Replayed bool
	Fine     bool // the handler has succeeded
}

// same reports whether two answers are equal for a client.
func (a answer) same(b answer) bool {
	return a.Status == b.Status && a.Location == b.Location && a.Body == b.Body
}

func (a answer) String() string {
	return fmt.Sprintf("%d %s from process %d, replayed %v: %.120s", a.Status, a.Code, a.Process, a.Replayed, a.Body)
}

// firstPart is how many bytes of a long answer are read before reading is called.
const firstPart = 10_000

// clientTime bounds a request. A client without an answer by then is an error.
const clientTime = patience - 5*time.Second

// socketBuffer is the size of the sockets' buffers, in bytes. It is small, so that a server
// cannot send a long answer ahead of a client that does not read.
const socketBuffer = 4 << 10

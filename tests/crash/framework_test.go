package crash

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A framework is one that the service can run on, and that its clients call it by.
type framework struct {
	// serve serves until it is told to stop.
	serve func(s *service, l net.Listener) (stop func(context.Context))
	// ask asks the service at an address. An error is no answer: nobody knows what
	// became of the question. A part of an answer comes with an error.
	ask func(ctx context.Context, addr string, q question) (answer, error)
	// endpoint returns the key of the attempts.
	endpoint func(policy, key string) string
	// whole is true if a client gets an answer whole or not at all.
	whole bool
	// committed returns the answer in a record.
	committed func(text string) (answer, error)
}

var frameworks = map[string]framework{
	"net/http": {
		serve: serveNetHTTP, ask: askHTTP, committed: decodeHTTP,
		endpoint: func(policy, key string) string { return core.EndpointKey("POST", "POST /"+policy, key) },
	},
	"gin": {
		serve: serveGin, ask: askHTTP, committed: decodeHTTP,
		endpoint: func(policy, key string) string { return core.EndpointKey("POST", "/"+policy, key) },
	},
	"grpc": {
		serve: serveGRPC, ask: askGRPC, committed: decodeGRPC, whole: true,
		endpoint: func(policy, key string) string { return core.EndpointKey("", methods[policy], key) },
	},
}

// The policies of the service, which are its routes as well.
const (
	reject = "reject"
	rerun  = "rerun"
)

var policies = map[string]core.Policy{reject: core.Reject, rerun: core.Rerun}

// A question is a request of a client.
type question struct {
	policy, key string
	hasty       bool           // it does not wait
	long        int            // see payment
	reading     func(read int) // runs when so many bytes of the answer are read
}

// An answer is what a client got.
type answer struct {
	Process  int    // which was asked
	Status   int    // by the framework's count
	Code     string // of the outcome, if the handler did not run
	Location string // a header that belongs to the answer
	Body     string
	Replayed bool
	Fine     bool // the handler has done it
}

// same reports whether two answers are equal to the client.
func (a answer) same(b answer) bool {
	return a.Status == b.Status && a.Location == b.Location && a.Body == b.Body
}

func (a answer) String() string {
	return fmt.Sprintf("%d %s from process %d, replayed %v: %.120s", a.Status, a.Code, a.Process, a.Replayed, a.Body)
}

// half is how many bytes of a long answer are read before reading is called.
const half = 10_000

// clientTime bounds a question. A client that has no answer by then is stranded.
const clientTime = patience - 5*time.Second

// smallBuffer is the size of sockets' buffers, in bytes: what is not read in
// time cannot be sent.
const smallBuffer = 4 << 10

package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/subprocess"
)

// orders configure a service process.
type orders struct {
	Framework string
	Process   int
	Redis     string // host:port
	Ledger    string // URL
	TTL, Wait time.Duration
	Command   time.Duration // the limit of a command
}

// TestService is a service process. It serves until its parent stops it or dies.
func TestService(t *testing.T) {
	s := &service{orders: subprocess.Orders[orders](t), ledger: &http.Client{Transport: &http.Transport{}}}
	rdb := redis.NewClient(&redis.Options{Addr: s.Redis})
	defer func() { _ = rdb.Close() }()
	s.locks = core.Must(core.New(rdb, core.WithTTL(s.TTL), core.WithCommandTimeout(s.Command), core.WithObserver(s.observe)))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := frameworks[s.Framework].serve(s, listener)
	subprocess.Report(serving, listener.Addr().String())
	subprocess.AwaitStop()
	stop(t.Context())
	if err := s.locks.Close(t.Context()); err != nil {
		t.Error(err)
	}
	s.ledger.CloseIdleConnections()
}

// A service takes payments.
type service struct {
	orders
	locks  *core.Locker
	ledger *http.Client
}

// serving is the report of the address at which a service serves.
const serving = "serving"

// The events that a service reports, each before a key.
const (
	waiting  = "waiting"  // a request waits for the holder
	replayed = "replayed" // a request got the stored answer
	lost     = "lost"     // an attempt has lost its lease
	refused  = "refused"  // an attempt was not committed: another attempt has begun
	unstored = "unstored" // an attempt was not committed: Redis was not available
	restored = "restored" // an attempt was committed although its record was gone
)

func (s *service) observe(event core.Event) {
	key := event.Key.Raw()
	switch event.Kind {
	case core.Waiting:
		subprocess.Report(waiting, key)
	case core.Replayed:
		subprocess.Report(replayed, key)
	case core.Lost:
		subprocess.Report(lost, key)
	case core.Restored:
		subprocess.Report(restored, key)
	case core.Committed:
		switch {
		case errors.Is(event.Err, core.ErrLost):
			subprocess.Report(refused, key)
		case errors.Is(event.Err, core.ErrUnavailable):
			subprocess.Report(unstored, key)
		case event.Err != nil:
			subprocess.Report("not committed, unexpected error:", event.Err.Error())
		}
	}
}

// A payment is the body of a request.
type payment struct {
	Extra int // how many bytes of filler the receipt has
}

// A receipt is the answer to a payment.
type receipt struct {
	Key, Charge string
	Number      int
	Process     int
	Filler      string
}

// errTryAgain is a payment that had no effect.
var errTryAgain = errors.New("try again")

// pay is the handler. It goes on after its lease is lost: it has to complete what it has
// begun.
func (s *service) pay(ctx context.Context, attempt *core.Attempt, key string, body []byte) (r receipt, err error) {
	var p payment
	if err := json.Unmarshal(body, &p); err != nil {
		return receipt{}, err
	}
	ctx = context.WithoutCancel(ctx)
	v := ledgerCall{Process: s.Process, Key: key, Number: attempt.Number(), Token: attempt.Lease().Token()}
	if _, err := s.call(ctx, v); err != nil {
		return receipt{}, errTryAgain
	}
	v.Charge = true
	id, err := s.call(ctx, v)
	if err != nil {
		return receipt{}, err // a 500 or INTERNAL, which leaves the outcome unknown
	}
	return receipt{key, id, v.Number, s.Process, strings.Repeat(id, p.Extra/len(id))}, nil
}

// call calls the ledger.
func (s *service) call(ctx context.Context, v ledgerCall) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Ledger, bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	answer, err := s.ledger.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	id, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return "", errors.New(answer.Status)
	}
	return string(id), err
}

// A framework serves the service and sends requests to it.
type framework struct {
	// serve serves until stop is called.
	serve func(s *service, l net.Listener) (stop func(context.Context))
	// ask sends a request to the service at an address. An error means that no complete
	// answer came, so the outcome is unknown. The answer is the part that came.
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
		endpoint: func(policy, key string) string { return adapter.Must(core.EndpointKey("POST", "POST /"+policy, key)) },
	},
	"gin": {
		serve: serveGin, ask: askHTTP, committed: decodeHTTP, fastCase: 2,
		endpoint: func(policy, key string) string { return adapter.Must(core.EndpointKey("POST", "/"+policy, key)) },
	},
	"grpc": {
		serve: serveGRPC, ask: askGRPC, committed: decodeGRPC, atomic: true, fastCase: 1,
		endpoint: func(policy, key string) string { return adapter.Must(core.EndpointKey("", methods[policy], key)) },
	},
}

// The policies of the service. Each is also a route.
const (
	reject = "reject"
	rerun  = "rerun"
)

var policies = map[string]bool{reject: false, rerun: true} // core.WithRerunUnknown

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
	Code     string // of the refusal, if the handler did not run
	Location string // a header that belongs to the answer
	Body     string
	Replayed bool
	Fine     bool // the handler has succeeded
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

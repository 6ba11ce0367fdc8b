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
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// ordersEnv carries the orders of a service process, as JSON. They make a test
// serve.
const ordersEnv = "ATTEMPTTEST_ORDERS"

// orders are what a service process is to be.
type orders struct {
	Framework string
	Process   int
	Redis     string // host:port
	Ledger    string // URL
	TTL, Wait time.Duration
}

// TestService is a service process. It serves until its standard input ends, which
// it does at the latest with the process that has started it.
func TestService(t *testing.T) {
	text := os.Getenv(ordersEnv)
	if text == "" {
		t.Skip("only runs in the processes that other tests start")
	}
	s := &service{ledger: &http.Client{Transport: &http.Transport{}}}
	if err := json.Unmarshal([]byte(text), &s.orders); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: s.Redis})
	defer func() { _ = rdb.Close() }()
	s.locks = core.Must(core.New(rdb, core.WithTTL(s.TTL), core.WithObserver(s.observe)))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := frameworks[s.Framework].serve(s, listener)
	say("listening", listener.Addr().String())
	_, _ = io.Copy(io.Discard, os.Stdin)
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

// say tells the process that has started this one. What was said stays said if
// this process is killed.
func say(words ...string) { _, _ = fmt.Println("@ " + strings.Join(words, " ")) }

// The words of a service, before a key.
const (
	waiting  = "waiting"  // a request waits for another one
	replayed = "replayed" // it got that one's answer
	lost     = "lost"     // an attempt has lost its lease
	refused  = "refused"  // it was not committed: another one has begun
	unstored = "unstored" // it was not committed: Redis was not there
	restored = "restored" // it was, and there was no record any more
)

func (s *service) observe(event core.Event) {
	key := event.Key.Raw()
	switch event.Kind {
	case core.Waiting:
		say(waiting, key)
	case core.Replayed:
		say(replayed, key)
	case core.Lost:
		say(lost, key)
	case core.Restored:
		say(restored, key)
	case core.Committed:
		switch {
		case errors.Is(event.Err, core.ErrLost):
			say(refused, key)
		case errors.Is(event.Err, core.ErrUnavailable):
			say(unstored, key)
		case event.Err != nil:
			say("not committed, for no known reason:", event.Err.Error())
		}
	}
}

// A payment is what a client asks for.
type payment struct {
	Long int // how many bytes the receipt is longer than it need be
}

// A receipt is how a payment is answered.
type receipt struct {
	Key, Charge string
	Number      int
	Process     int
	Filler      string
}

// errTryAgain is a payment that had no effect.
var errTryAgain = errors.New("try again")

// pay is the handler. It goes on if its lease is lost: what it has begun has to be
// brought to an end.
func (s *service) pay(ctx context.Context, attempt *core.Attempt, key string, body []byte) (r receipt, err error) {
	var p payment
	if err := json.Unmarshal(body, &p); err != nil {
		return receipt{}, err
	}
	ctx = context.WithoutCancel(ctx)
	v := visit{Process: s.Process, Key: key, Number: attempt.Number(), Token: attempt.Lease().Token()}
	if _, err := s.call(ctx, v); err != nil {
		return receipt{}, errTryAgain
	}
	v.Charge = true
	id, err := s.call(ctx, v)
	if err != nil {
		attempt.Decide(core.Uncertain)
		return receipt{}, err
	}
	return receipt{key, id, v.Number, s.Process, strings.Repeat(id, p.Long/len(id))}, nil
}

// call calls the ledger.
func (s *service) call(ctx context.Context, v visit) (string, error) {
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

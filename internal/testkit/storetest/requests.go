package storetest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// AttemptRequest returns a request for the key k with an attempt.
func AttemptRequest(token string) AnyRequest {
	r := Request(token)
	r.Attempt = &store.Attempt{Fingerprint: []byte("print"), Keep: Keep}
	return r
}

// Record is the answer that a commit stores.
const Record = "answer\x00\xff\r\n"

// Tokens makes unique tokens of the process Me. It is safe for concurrent use.
type Tokens struct {
	mu   sync.Mutex
	Last int // the number in the last token
}

// Next returns a new token.
func (s *Tokens) Next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Last++
	return fmt.Sprintf("%s:%d", Me, s.Last)
}

// Request returns a request for the key with a new token.
func (s *Tokens) Request(key string) AnyRequest {
	r := Request(s.Next())
	r.Key = key
	return r
}

// The times of the requests differ so much that a test can tell them apart on a slow
// machine.
const (
	TTL      = 3 * time.Minute
	Claim    = 30 * time.Second
	QueueTTL = time.Minute // see queue.lua
	Keep     = time.Hour   // the TTL of a record
)

// The ids of the processes of the tests.
var (
	Me  = strings.Repeat("a", 32)
	Bob = strings.Repeat("b", 32)
	Eve = strings.Repeat("c", 32)
)

// The tokens of the processes. A reader's lease is shared without a limit, and a permit's
// with a limit of 2.
var (
	Me1       = Me + ":1"
	Me2       = Me + ":2"
	MeReader1 = store.NewToken(Me, store.Unlimited, 1)
	MePermit1 = store.NewToken(Me, 2, 1)
	Bob1      = Bob + ":1"
	Bob2      = Bob + ":2"
	Eve1      = Eve + ":1"
)

// The names of the Redis keys of the lock "k", and the channel of the process Me.
var (
	LockName       = "p:k"
	QueueName      = "{p:k}:q"
	FenceName      = "{p:k}:f"
	RecordName     = "{p:k}:r"
	SharedName     = "{p:k}:s"
	ProcessChannel = "p:" + Me
)

// Request returns a request for the key "k" that joins the queue.
func Request(token string) AnyRequest {
	return AnyRequest{Key: "k", Token: token, TTL: TTL, Claim: Claim, Bound: 5 * time.Second, Join: true, WithHolder: true}
}

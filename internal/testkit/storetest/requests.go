package storetest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// AttemptRequest returns a request for the key k that belongs to an attempt.
func AttemptRequest(token string) AnyRequest {
	r := Request(token)
	r.Attempt = &store.Attempt{Fingerprint: []byte("print"), Keep: Keep}
	return r
}

// Record is what a commit stores.
const Record = "answer\x00\xff\r\n"

// Tokens makes tokens that no two commands share.
type Tokens struct {
	mu   sync.Mutex
	Last int
}

func (s *Tokens) Next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Last++
	return fmt.Sprintf("%s:%d", Me, s.Last)
}

// Request returns one for the key, under a token of its own.
func (s *Tokens) Request(key string) AnyRequest {
	r := Request(s.Next())
	r.Key = key
	return r
}

// The times of the tests' requests are far enough apart to be told from each
// other on a slow machine.
const (
	TTL      = 3 * time.Minute
	Claim    = 30 * time.Second
	QueueTTL = time.Minute // see queue.lua
	Keep     = time.Hour   // of a record
)

// The processes of the tests, and their tokens.
var (
	Me, Bob, Eve   = strings.Repeat("a", 32), strings.Repeat("b", 32), strings.Repeat("c", 32)
	Me1, Me2       = Me + ":1", Me + ":2"
	Bob1, Bob2     = Bob + ":1", Bob + ":2"
	Eve1           = Eve + ":1"
	LockName       = "p:k"
	QueueName      = "{p:k}:q"
	FenceName      = "{p:k}:f"
	RecordName     = "{p:k}:r"
	ProcessChannel = "p:" + Me
)

// Request returns a request for the key k that joins the line.
func Request(token string) AnyRequest {
	return AnyRequest{Key: "k", Token: token, TTL: TTL, Claim: Claim, Bound: 5 * time.Second, Join: true, WithHolder: true}
}

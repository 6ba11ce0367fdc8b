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

// An AnyRequest has the fields of all requests of a store. A test sends one of them as
// different transitions, and a fake store shows each request that it received as one.
type AnyRequest struct {
	Key, Token         string
	Limit              store.Limit
	TTL, Bound         time.Duration
	Inline, WithHolder bool
	Claim              time.Duration
	Join, Apart, Fresh bool
	Fences             int
	Waiter             string
	NoWaiters          bool
	Rejoin             string
	Keep               time.Duration // of a Release or a Resolve
	Ticket             string
	Attempt            *store.Attempt
	Ending             store.Ending
	Record             []byte
	Seen               string
	Resolution         store.Resolution
}

// Target returns the fields that most requests share.
func (r AnyRequest) Target() store.Target {
	return store.Target{Key: r.Key, Limit: r.Limit, Token: r.Token, TTL: r.TTL, Bound: r.Bound}
}

// Take returns the request as a Take.
func (r AnyRequest) Take() store.TakeRequest {
	return store.TakeRequest{Target: r.Target(), Inline: r.Inline, WithHolder: r.WithHolder}
}

// Enqueue returns the request as an Enqueue.
func (r AnyRequest) Enqueue() store.EnqueueRequest {
	return store.EnqueueRequest{
		Target: r.Target(), Inline: r.Inline, Claim: r.Claim, Join: r.Join, WithHolder: r.WithHolder, Fences: r.Fences, Waiter: r.Waiter,
		Attempt: r.Attempt, Ticket: r.Ticket, Apart: r.Apart, Fresh: r.Fresh,
	}
}

// Renew returns the request as a Renew.
func (r AnyRequest) Renew() store.RenewRequest {
	return store.RenewRequest{Target: r.Target(), Fences: r.Fences, Attempt: r.Attempt}
}

// Release returns the request as a Release. With an Attempt and no Ending, it is an abort.
func (r AnyRequest) Release() store.ReleaseRequest {
	if r.Attempt != nil && r.Ending == store.NoEnding {
		r.Ending = store.EndAbort
	}
	return store.ReleaseRequest{
		Target: r.Target(), Inline: r.Inline, Claim: r.Claim, NoWaiters: r.NoWaiters, Rejoin: r.Rejoin, Keep: r.Keep, Waiter: r.Waiter,
		Attempt: r.Attempt, Ending: r.Ending, Record: r.Record, Ticket: r.Ticket, Apart: r.Apart,
	}
}

// Resolve returns the request as a Resolve.
func (r AnyRequest) Resolve() store.ResolveRequest {
	return store.ResolveRequest{
		Key: r.Key, Bound: r.Bound, Seen: r.Seen, Resolution: r.Resolution, Keep: r.Keep, Record: r.Record,
	}
}

// Outcome returns the request as an Outcome.
func (r AnyRequest) Outcome() store.OutcomeRequest {
	return store.OutcomeRequest{Key: r.Key, Bound: r.Bound}
}

// OfTake returns a Take as an AnyRequest.
func OfTake(r store.TakeRequest) AnyRequest {
	a := ofTarget(r.Target)
	a.Inline, a.WithHolder = r.Inline, r.WithHolder
	return a
}

// OfEnqueue returns an Enqueue as an AnyRequest.
func OfEnqueue(r store.EnqueueRequest) AnyRequest {
	a := ofTarget(r.Target)
	a.Inline, a.Claim, a.Join, a.Fences, a.Waiter, a.Attempt = r.Inline, r.Claim, r.Join, r.Fences, r.Waiter, r.Attempt
	a.WithHolder, a.Ticket, a.Apart, a.Fresh = r.WithHolder, r.Ticket, r.Apart, r.Fresh
	return a
}

// OfRenew returns a Renew as an AnyRequest.
func OfRenew(r store.RenewRequest) AnyRequest {
	a := ofTarget(r.Target)
	a.Fences, a.Attempt = r.Fences, r.Attempt
	return a
}

// OfRelease returns a Release as an AnyRequest.
func OfRelease(r store.ReleaseRequest) AnyRequest {
	a := ofTarget(r.Target)
	a.Inline, a.Claim, a.NoWaiters, a.Rejoin, a.Waiter, a.Apart = r.Inline, r.Claim, r.NoWaiters, r.Rejoin, r.Waiter, r.Apart
	a.Attempt, a.Ending, a.Record, a.Keep, a.Ticket = r.Attempt, r.Ending, r.Record, r.Keep, r.Ticket
	return a
}

func ofTarget(t store.Target) AnyRequest {
	return AnyRequest{Key: t.Key, Limit: t.Limit, Token: t.Token, TTL: t.TTL, Bound: t.Bound}
}

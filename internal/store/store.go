package store

import (
	"context"
	"time"
)

// InlineTime is how long a store keeps the caller of an inline request at most.
const InlineTime = 50 * time.Millisecond

// A Request names one transition of one key.
type Request struct {
	// Key is the lock key as the caller knows it, without a prefix.
	Key string
	// Token names one episode: one wait and the lease that follows. A token
	// for which a release was ever sent is dead and must not be used again.
	Token string
	// TTL is the life that a grant or a renewal gives the key.
	TTL time.Duration
	// Bound is the longest that the transition may take, re-send included.
	Bound time.Duration
	// Inline is true where the caller waits for the answer anyhow, and holds no
	// lock: the store may work on its goroutine, for InlineTime at most, and call
	// done before the method returns.
	Inline bool
	// Look makes Take tell who holds the key that it does not grant.
	WithHolder bool
	// Claim is the life of a key that Enqueue or Release hands to another
	// process, until that process confirms the grant with Enqueue.
	Claim time.Duration
	// Join puts the token in line where Enqueue does not grant the key.
	Join bool
	// Fences is how many fencing numbers Enqueue or Renew reserves for the
	// lease, at most; 0 is none.
	Fences int
	// Alone is true where nobody is known to wait for the key that Release frees.
	NoWaiters bool
	// Rejoin is the token of the next episode of this process, which Release
	// puts at the end of the line in the same step; "" is none. There is none
	// with an Attempt.
	Rejoin string
	// Waiter is the token that stands in line, and that hints name, where Token
	// is a ballot: a store that votes gives up a ballot that was not granted, so
	// each question has one of its own. "" is where Token itself stands in line.
	Waiter string

	// Attempt is the idempotent request that the key is for; nil is none. With
	// one, Enqueue decides by the key's record as well, Renew keeps that alive, and
	// Release ends the attempt as Ending says, with Record as its answer. All
	// requests with one token have the same one; a Release without it leaves the
	// record alone.
	Attempt *Attempt
	Ending  Ending
	Record  []byte
}

// An Answer is what the server said to a Take or an Enqueue.
type Answer struct {
	// Granted is true when the key now carries the token of the request.
	Granted bool
	// Since is when the granting command was sent: the lease's life counts
	// from here. It carries a monotonic clock reading.
	Since time.Time
	// Line is how many tokens stand in line behind a grant, or LineUnknown.
	Waiting int
	// Fence is the first of the fencing numbers that were reserved, and Fences
	// how many they are: at least one where some were asked for; 0 is none.
	Fence  int64
	Fences int

	// Holder is the token or foreign value found in the key, if not granted.
	// Unnamed is true where it was not looked at: see Request.WithHolder.
	Holder        string
	HolderUnknown bool
	// Remaining is how long the holder's key lives on: zero where it is not
	// known, negative where the key has no expiry.
	Remaining time.Duration
	// Silent is true when the token is the first of the line, and the holder
	// is a foreign client, which tells nobody of its end.
	ForeignHolder bool
	// Split is true where nobody holds the key: several asked a store that votes
	// at the same time, and none of them was granted it.
	SplitVote bool

	// Verdict is why an attempt is not to run, now or later. With one the key is
	// not granted, and the token is dead and has left the line.
	Verdict Verdict
	// Record is the answer of the attempt that was done, if that is the verdict.
	// Nobody may change its bytes.
	Record []byte
	// Number counts the attempts, this one included, since one was done or
	// aborted, if granted: from the second one on, those before it died.
	Number int
	// Running is true when the key is not granted because another attempt runs,
	// with the same fingerprint.
	Running bool
}

// LineUnknown is the line of an answer that does not tell of it.
const WaitingUnknown = -1

// A Renewal is what the server said to a Renew.
type Renewal struct {
	// Held is whether the key carried the token.
	Held bool
	// Since is when the deciding command was sent.
	Since time.Time
	// Line, Fence and Fences are those of an Answer.
	Waiting int
	Fence   int64
	Fences  int
}

// An End says what became of a key that was to be released.
type ReleaseStatus int

// The ends of a release.
const (
	// NotHeld: the key did not carry the token. Nobody rejoined.
	NotHeld ReleaseStatus = iota
	// Freed: nobody waits, and the key is free.
	Freed
	// Handed: the first of the line that listens has it.
	Handed
	// Kept: nobody else waits, and the key carries the token that rejoined.
	Kept
	// Unsure: the key did not carry the token, but an earlier send of this
	// release may have freed it or handed it on, and may have rejoined. Or the key
	// carries the token that rejoined, and replicas are still to acknowledge that.
	Unsure
)

// A Released is what the server said to a Release.
type ReleaseResult struct {
	Status ReleaseStatus
	// Since is when the command was sent that kept the key.
	Since time.Time
	// Stored is what became of the record, with an Attempt.
	Record RecordStatus
}

// Store is the server's side of the lock: Take, Enqueue, Renew, Release and
// Resolve are atomic transitions, safe to send again with the same token.
//
// A transition returns at once, unless it is inline. Its answer goes to done, which is called once,
// within the request's bound, by a goroutine of the store and, except for an
// inline request, never before the method has returned. done must not block: other answers wait behind it. An
// error is always a *Fault. A command that was sent cannot be called back, so
// there is no context. All methods are safe for concurrent use.
type Store interface {
	// Take asks once for a key on which no contention is known. It does not
	// look at the line.
	Take(r Request, done func(Answer, error))
	// Enqueue asks for a key behind all who wait for it, joins them if asked,
	// and confirms a grant: it raises its life to a full TTL. A waiter runs it
	// again on every hint and whenever its patience is over.
	Enqueue(r Request, done func(Answer, error))
	// Renew raises the life of the key to at least TTL. It never creates and
	// never shortens.
	Renew(r Request, done func(Renewal, error))
	// Release gives the key to the first of the line that listens, or frees
	// it, and takes the token out of the line. It also is how a waiter leaves.
	Release(r Request, done func(ReleaseResult, error))

	// Resolve frees a key whose attempt died in the middle: it forgets the
	// record. One that runs, holding the key, stays, and so does one that is done.
	// It needs the request's Key and Bound alone.
	Resolve(r Request, done func(running bool, err error))

	// Listen makes this process one that listens, for hints on the key, until
	// stop is called. ready is closed once the server has confirmed it: a
	// waiter that joins the line before may be passed over. It does not block.
	Listen(key string) (ready <-chan struct{}, stop func())
	// OnHint registers the one function that is told "look again at this key":
	// with a token, that a message named this token of ours; without one, that
	// hints may have been missed. It must be called before the first transition,
	// and the function must not block. Messages can be forged.
	OnHint(func(key, token string))
	// OnLateGrant registers the one function that is called where a command that
	// was left behind has put a token of ours into a key. The rules of OnHint
	// hold, but the token comes from the server's reply.
	OnLateGrant(func(key, token string))
	// Close ends all listening, and waits until every command that was left
	// behind has ended, or until ctx ends; then it returns ctx's error.
	Close(ctx context.Context) error
}

// Package store defines the transitions of a lock: the interface between package engine,
// which has the queues of one process and does not depend on Redis, and the stores, which
// send the transitions to Redis.
//
// It has a request type for each transition, the results of the transitions, and the fault
// of a transition. Both sides import it. It imports neither.
package store

import (
	"context"
	"time"
)

// An Answer is the result of a Take or an Enqueue.
type Answer struct {
	// Granted is true if the key now holds the token of the request.
	Granted bool
	// Since is when the granting command was sent. The life of the lease counts from then.
	// It has a monotonic clock reading.
	Since time.Time
	// SentTwice is true if another send of the request may have been applied, or may still be. If
	// that is after the lease has ended, the key holds the token again.
	SentTwice bool
	// Waiting is how many tokens are in the queue behind a grant, or WaitingUnknown.
	Waiting int
	// Fence is the first of the fencing numbers that were reserved, and Fences is how many
	// they are: at least one if the request wanted any; 0 is none. All shared leases that are
	// out at the same time have the same number, that of their phase, and Fences is 1.
	Fence  int64
	Fences int

	// Shared is true if shared leases are out, and the key was not granted because of them.
	// Then the Holder is not the value of the key, and ForeignHolder is false.
	Shared bool
	// Holder is the token or foreign value in a key that was not granted.
	// HolderUnknown is true if it was not read: see TakeRequest.WithHolder.
	Holder        string
	HolderUnknown bool
	// Remaining is the remaining TTL of the key: zero if it is not known, negative if the
	// key has none. If Shared, it is the time until a place may become free without a hint.
	Remaining time.Duration
	// ForeignHolder is true if the token is the first of the queue and the holder is a
	// foreign client, which sends no hint when it releases the key.
	ForeignHolder bool
	// SplitVote is true if no token holds the key: several were voted for at the same time
	// by a store that votes, and none was granted the key.
	SplitVote bool

	// Verdict says why an attempt must not run, now or later. With a verdict the key is not
	// granted, and the token is dead and has left the queue.
	Verdict Verdict
	// Unreported names the attempt that died, if that is the verdict and the record does not
	// note yet that the unknown outcome was reported: see NoteReported. Otherwise it is "".
	Unreported string
	// Record is the answer of the attempt that was done, if that is the verdict. The caller
	// must not change its bytes.
	Record []byte
	// Number counts the attempts, this one included, since one was done or aborted, if
	// granted. From 2 on, the attempts before this one died.
	Number int
	// Running is true if the key is not granted because another attempt runs, with the
	// same fingerprint.
	Running bool
	// First is the Reference of the attempt that the record is about, with a Verdict or if Running; if
	// granted, of the attempt that died before this one. "" is none.
	First string
}

// WaitingUnknown is the Waiting of a result that does not report it.
const WaitingUnknown = -1

// A Renewal is the result of a Renew.
type Renewal struct {
	// Held is true if the key held the token.
	Held bool
	// Since is when the deciding command was sent.
	Since time.Time
	// Waiting, Fence and Fences are those of an Answer.
	Waiting int
	Fence   int64
	Fences  int
}

// A ReleaseStatus is the result of a Release for its key.
type ReleaseStatus int

// The results for a key.
const (
	// NotHeld: the key did not hold the token. Rejoin did not join the queue.
	NotHeld ReleaseStatus = iota
	// Freed: no token waits, and the key is free.
	Freed
	// Handed: the first token of the queue with a process that listens has the key.
	Handed
	// Kept: no other token waits, and the key holds the token that rejoined.
	Kept
	// Unsure: the key did not hold the token, but an earlier send of this release may have
	// freed it or handed it on, and Rejoin may have joined the queue. Or the key holds the
	// token that rejoined, and replicas have not acknowledged that yet.
	Unsure
)

// A ReleaseResult is the result of a Release.
type ReleaseResult struct {
	Status ReleaseStatus
	// Since is when the command was sent that kept the key.
	Since time.Time
	// Record is the result for the record, with an Attempt.
	Record RecordStatus
}

// Store is the server's side of the lock. Take, Enqueue, Renew, Release and Resolve are
// atomic transitions, which may be sent again with the same token. Outcome only reads.
//
// A transition returns at once, unless it is inline. Its result goes to done. A goroutine of
// the store calls done once, within the request's bound. Except for an inline request, it
// calls done only after the method has returned. done must not block, because other results
// wait behind it. An error is always a *Fault. There is no context, because a command that
// was sent cannot be cancelled. All methods are safe for concurrent use.
type Store interface {
	// Take asks once for a key on which no contention is known. It ignores the queue.
	Take(r TakeRequest, done func(Answer, error))
	// Enqueue asks for a key behind all tokens that wait for it. It adds the token to the
	// queue if the request wants that. It also confirms a grant: it extends its life to the
	// full TTL. A waiter sends it again on every hint, and after each pause.
	Enqueue(r EnqueueRequest, done func(Answer, error))
	// Renew extends the life of the key to at least TTL. It never creates the key, and
	// never shortens its life.
	Renew(r RenewRequest, done func(Renewal, error))
	// Release gives the key to the first token of the queue with a process that listens, or
	// frees it. It removes the token from the queue, so a waiter leaves by it, too. With Keep
	// the status is Freed or NotHeld, and the queue stays as it is.
	Release(r ReleaseRequest, done func(ReleaseResult, error))

	// Resolve ends an attempt that died, as an operator says. It compares the attempt with
	// the one that the operator has seen, and changes the record in the same step. Afterwards
	// the record refuses a late commit of the attempt.
	Resolve(r ResolveRequest, done func(ResolveStatus, error))
	// Outcome reads what became of a request.
	Outcome(r OutcomeRequest, done func(Outcome, error))

	// Listen subscribes this process to hints on the key, until stop is called. ready is
	// closed once the server has confirmed the subscription. The store may skip a waiter
	// that joins the queue before. Listen does not block.
	Listen(key string) (ready <-chan struct{}, stop func())
	// OnHint registers the one function that is called with each hint. A hint with a token
	// means that a message named this token of the process. A hint without one means that
	// hints may have been lost. OnHint must be called before the first transition, and the
	// function must not block. Messages can be forged.
	OnHint(func(key, token string))
	// OnLateGrant registers the one function that is called if a command that was left
	// behind has put a token of this process into a key. The rules of OnHint apply, but the
	// token comes from the server's reply.
	OnLateGrant(func(key, token string))
	// OnWarning registers the one function that is called with what an operator should know:
	// a server sends messages that cannot be read. It is called once for each reason and
	// server. The rules of OnHint apply.
	OnWarning(func(error))
	// OnOutage registers the one function that is called when an outage of a server begins, and
	// when it ends. It must be called before the first transition, and the function must not
	// block, nor call the store.
	OnOutage(func(Outage))
	// CountRefused counts a caller for the key that was refused because of an outage of its server.
	// It reports false if there is no outage. CountUnlocked says that a counted caller runs without
	// the lock. Both do no I/O.
	CountRefused(key string) (counted bool)
	CountUnlocked(key string)
	// Watch makes the store record what Unserved returns. It must be called before the first
	// transition.
	Watch()
	// Unserved returns since when the server of the key has not served any command, and the
	// last failure. In a quorum it is since when a majority is missing. The time is zero if
	// the server has served its last command. Until a server serves a command again, the store
	// sends it probes, so the time has no gap in which no command was sent. Unserved does no
	// I/O.
	Unserved(key string) (since time.Time, why error)
	// Close ends all subscriptions, and waits until every command that was left behind has
	// ended, or until ctx ends; then it returns ctx's error.
	Close(ctx context.Context) error
}

package engine

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// drift is how far the clocks of a client and a server may drift apart during a lease,
// in addition to one percent of the TTL. That part of the lease is not used.
const drift = 2 * time.Millisecond

// A lease is the store's grant of a key to this process, from the grant to the release.
// It may serve several holders, one after the other. The mutex of its queue's shard
// guards it.
type lease struct {
	queue *queue
	// position is the index in the schedule's heap, from 1; 0 if it is not there. due
	// is when the schedule handles the lease. The schedule's mutex guards both.
	position int
	due      time.Time
	leaseState
}

// A leaseState is the part of a lease that is zeroed for reuse.
type leaseState struct {
	token string
	begun time.Time // when the reply to its grant arrived
	// attempt is the attempt for which it was granted, nil for a mere lock, and number
	// is the number of that attempt at its request. before is the reference of the attempt
	// before it, if that died.
	attempt *Attempt
	number  int
	before  string
	// ttl is the longest TTL that a command gave the key.
	ttl time.Duration
	// sent is when the last command was sent that granted or renewed the lease.
	// validUntil is the end of its validity. Both have a monotonic clock reading.
	sent, validUntil time.Time

	holder *Hold
	last   *Hold // the last holder, which released the lease
	fences fences
	budget budget
	// othersWait is true once another process is known to wait for the key.
	othersWait bool
	// apart is true if the token is not in the store's queue while the key has it.
	apart bool
	// extended is true once a holder has extended the lease. The next holder must not
	// inherit the longer TTL.
	extended bool

	// seenAgain is true once the token was seen in the key during its release.
	seenAgain bool

	// renewAt is when to renew the lease for its holder; zero while a renewal is in
	// flight, and if the lease is not renewed.
	renewAt time.Time
	// awaitsRenewal is true while the lease is in the queue of the renewalLimiter.
	awaitsRenewal bool
	// inFlight counts renewals in flight. A release waits for them.
	inFlight int
	// afterRenewals is called when the last renewal in flight has ended.
	afterRenewals func()
}

// newLease returns the lease that a reply granted to the token of a request.
func newLease(q *queue, r store.Target, attempt *Attempt, sent time.Time) *lease {
	fresh := &q.firstLease
	if q.firstLeaseUsed {
		fresh = &lease{queue: q}
	}
	q.firstLeaseUsed = true
	now := time.Now()
	fresh.leaseState = leaseState{
		token: r.Token, ttl: r.TTL, sent: sent, validUntil: validUntil(sent, r.TTL),
		begun: now, budget: budget{begun: now}, attempt: attempt,
	}
	return fresh
}

// validUntil returns the end of the validity of a lease that a command granted or
// renewed. The lease counts from the time when the command was sent.
func validUntil(sent time.Time, ttl time.Duration) time.Time {
	return sent.Add(ttl - ttl/100 - drift)
}

func (l *lease) valid(now time.Time) bool { return now.Before(l.validUntil) }

// raise applies a renewal. The validity never becomes shorter.
func (l *lease) raise(sent time.Time, ttl time.Duration) {
	l.sent, l.ttl = sent, max(l.ttl, ttl)
	if until := validUntil(sent, ttl); until.After(l.validUntil) {
		l.validUntil = until
	}
}

// renewed applies the reply to a renewal that found the token in the key.
func (l *lease) renewed(r store.Renewal, ttl time.Duration) {
	l.raise(r.Since, ttl)
	l.noteStoreQueue(r.Waiting, r.Since)
	l.fences.add(r.Fence, r.Fences)
}

// suits reports whether the lease can be passed to the request without a renewal: the
// validity left is long enough, the request wants no longer TTL and renews the lease,
// and there is a fencing number if it wants one.
func (l *lease) suits(r Request, now time.Time) bool {
	return r.Renew && r.TTL <= l.ttl && l.validUntil.Sub(now) >= r.TTL/3 &&
		(!r.Fencing || !l.fences.empty())
}

// The budget of passes within this process. After so many passes, or so long after the
// grant, the lease goes back to the store, so that other processes get their turn.
const (
	maxPasses   = 64
	maxPassTime = 50 * time.Millisecond
)

// A budget limits how often a lease may be passed on in this process. It is unlimited
// while no other process waits for the key. A fresh lease is not known to be unlimited
// unless the store says so.
type budget struct {
	unlimited bool
	begun     time.Time
	passes    int
}

// isSpent reports whether the lease has to go back to the store.
func (b *budget) isSpent(ttl time.Duration, now time.Time) bool {
	return !b.unlimited && (b.passes >= maxPasses || now.Sub(b.begun) >= min(ttl/4, maxPassTime))
}

// start starts the budget of a lease that was unlimited.
func (b *budget) start(now time.Time) {
	if b.unlimited {
		*b = budget{begun: now}
	}
}

// noteStoreQueue notes how many tokens waited in the store's queue, by the reply to a
// command that was sent at this time. The queue is known to be empty only if this
// process has listened since then: each later waiter sends a hint.
func (l *lease) noteStoreQueue(waiting int, sent time.Time) {
	switch {
	case waiting > 0:
		l.othersWait = true
		l.budget.start(time.Now())
	case waiting == 0 && l.queue.isListening() && sent.After(l.queue.lastHint):
		l.budget.unlimited = true
	}
}

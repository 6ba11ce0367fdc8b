package engine

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// drift is what the clocks of a client and a server may show apart, beside one
// percent of the TTL: the part of a lease that is not used.
const drift = 2 * time.Millisecond

// A lease is the store's grant of a key to this process, from the grant to the
// release. It may serve several holders one after the other. It is guarded by
// the mutex of its line's shard.
type lease struct {
	queue *queue
	// position in the schedule's heap, from 1; 0 while it is not in it. due is
	// when the lease has to be seen to. Both are guarded by the schedule's mutex.
	position int
	due      time.Time
	leaseState
}

// A tenure is what the store gave, and what has become of it.
type leaseState struct {
	token string
	begun time.Time // when its grant was heard of
	// attempt is the one that it was granted for, the number-th of its request;
	// nil is none.
	attempt *Attempt
	number  int
	// ttl is the longest life that a command gave the key.
	ttl time.Duration
	// sent is when the last granting or renewing command was sent, and
	// validUntil the end of what is left of the lease; both have a monotonic
	// clock reading.
	sent, validUntil time.Time

	holder *Hold
	last   *Hold // which gave it back
	fences fences
	budget budget
	// wanted is true once another process was known to wait for it.
	othersWait bool
	// extended is true once a holder asked for a longer life: the next holder
	// does not inherit it.
	extended bool

	// seenAgain is true once the token was seen in the key during its release.
	seenAgain bool

	// renewAt is when to renew it for its holder; zero while a renewal is in
	// flight, and where there is none.
	renewAt time.Time
	// awaits is true while it stands in line to be renewed; see pace.
	awaitsRenewal bool
	// renewals in flight; a release waits for them.
	inFlight int
	// afterRenewals is called when the last renewal in flight has ended.
	afterRenewals func()
}

// newLease returns the lease that an answer granted to the request's token.
func newLease(q *queue, r store.Request, sent time.Time) *lease {
	fresh := &q.firstLease
	if q.firstLeaseUsed {
		fresh = &lease{queue: q}
	}
	q.firstLeaseUsed = true
	now := time.Now()
	fresh.leaseState = leaseState{
		token: r.Token, ttl: r.TTL, sent: sent, validUntil: validUntil(sent, r.TTL),
		begun: now, budget: budget{begun: now}, attempt: r.Attempt,
	}
	return fresh
}

// validUntil is when a lease that was granted or renewed by a command of that
// sending time must be taken for lost.
func validUntil(sent time.Time, ttl time.Duration) time.Time {
	return sent.Add(ttl - ttl/100 - drift)
}

// valid reports whether the lease can be relied on.
func (l *lease) valid(now time.Time) bool { return now.Before(l.validUntil) }

// raise takes in a renewal; what is left of a lease never becomes less.
func (l *lease) raise(sent time.Time, ttl time.Duration) {
	l.sent, l.ttl = sent, max(l.ttl, ttl)
	if until := validUntil(sent, ttl); until.After(l.validUntil) {
		l.validUntil = until
	}
}

// renewed takes in the answer to a renewal that found the token in the key.
func (l *lease) renewed(r store.Renewal, ttl time.Duration) {
	l.raise(r.Since, ttl)
	l.noteStoreQueue(r.Line, r.Since)
	l.fences.add(r.Fence, r.Fences)
}

// suits reports whether the lease can be passed as it is: with enough validity
// left, for a caller who wants no longer life and will renew it, and with a
// fencing number for one who wants it.
func (l *lease) suits(r Request, now time.Time) bool {
	return r.Renew && r.TTL <= l.ttl && l.validUntil.Sub(now) >= r.TTL/3 &&
		(!r.Fencing || !l.fences.empty())
}

// The budget of local passing: after so many passes, or so long from the
// grant, the lease goes back to the store, so that other processes have their
// turn.
const (
	maxPasses   = 64
	maxPassTime = 50 * time.Millisecond
)

// A budget says how much longer a lease may be passed on in this process. It
// is without limit as long as no other process waits for the key. That is not
// known of a fresh lease, unless the store said so.
type budget struct {
	unlimited bool
	begun     time.Time
	passes    int
}

// over reports whether the lease has to go back.
func (b *budget) isSpent(ttl time.Duration, now time.Time) bool {
	return !b.unlimited && (b.passes >= maxPasses || now.Sub(b.begun) >= min(ttl/4, maxPassTime))
}

// limit begins the budget of a lease that was without limit.
func (b *budget) start(now time.Time) {
	if b.unlimited {
		*b = budget{begun: now}
	}
}

// lineSeen takes in how many wait in the store's line, as a command of that
// sending time saw it. The line is only known to be empty to a process that has
// listened since: whoever comes later tells it.
func (l *lease) noteStoreQueue(waiting int, sent time.Time) {
	switch {
	case waiting > 0:
		l.othersWait = true
		l.budget.start(time.Now())
	case waiting == 0 && l.queue.isListening() && sent.After(l.queue.lastHint):
		l.budget.unlimited = true
	}
}

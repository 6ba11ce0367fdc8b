package quorumstore

import (
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/store"
)

// retryPause is the pause between two attempts to withdraw votes from a server that fails.
const retryPause = 250 * time.Millisecond

// withdrawals has the votes to withdraw from one server later: the server may have voted for
// ballots that are over, and this withdrawal or an earlier one has failed. Each is tried again
// until the server replies or the vote has expired. The votes matter even if less than a
// minority of the servers is down: another ballot may need such a vote for its majority. A
// retry withdraws one vote first, and all others once the server replies.
type withdrawals struct {
	server server
	work   *inflight.Counter

	mu       sync.Mutex
	pending  map[ballotID]withdrawal
	retrying bool
	closed   bool
}

// A withdrawal is a vote to withdraw.
type withdrawal struct {
	request redisstore.WithdrawRequest
	expires time.Time // when the vote has expired
}

// isRetrying reports whether votes wait for the server to reply to a withdrawal.
func (w *withdrawals) isRetrying() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending) > 0
}

// retryLater adds a vote to withdraw. The vote expires after the given time.
func (w *withdrawals) retryLater(r redisstore.WithdrawRequest, ttl time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	r.Wake = true
	if w.pending == nil {
		w.pending = make(map[ballotID]withdrawal)
	}
	if r.Waiter == "" { // keep a waiter that must leave the queue with this vote
		r.Waiter = w.pending[ballotIDOf(r.Target)].request.Waiter
	}
	w.pending[ballotIDOf(r.Target)] = withdrawal{r, time.Now().Add(ttl)}
	w.schedule()
}

// schedule starts the timer of the next retry, if one is needed. The caller holds w.mu.
func (w *withdrawals) schedule() {
	if w.retrying || len(w.pending) == 0 || w.closed {
		return
	}
	w.retrying = true
	w.work.Add()
	time.AfterFunc(retryPause, func() {
		defer w.work.Done()
		w.retry()
	})
}

// retry withdraws one vote and, if the server replies, all others.
func (w *withdrawals) retry() {
	one, ok := w.next()
	if !ok {
		return
	}
	w.server.Withdraw(one.request, func(_ store.ReleaseResult, err error) {
		for _, other := range w.complete(one, err) {
			w.server.Withdraw(other.request, func(_ store.ReleaseResult, err error) {
				if isTemporary(err) {
					w.retryLater(other.request, time.Until(other.expires))
				}
			})
		}
	})
}

// next returns a vote to withdraw, and removes the votes that have expired.
func (w *withdrawals) next() (next withdrawal, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for id, one := range w.pending {
		if !now.Before(one.expires) {
			delete(w.pending, id)
			continue
		}
		next, ok = one, true
	}
	w.retrying = ok && !w.closed
	return next, w.retrying
}

// complete records the result of a retry. If the server replied, complete removes the other
// votes and returns them: the caller withdraws them at once.
func (w *withdrawals) complete(one withdrawal, err error) (rest []withdrawal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retrying = false
	if isTemporary(err) {
		w.schedule()
		return nil
	}
	// If it was added again during the retry, the server may have voted again since, or a waiter
	// must still leave the queue.
	if w.pending[ballotIDOf(one.request.Target)] == one {
		delete(w.pending, ballotIDOf(one.request.Target))
	}
	for _, other := range w.pending {
		rest = append(rest, other)
	}
	w.pending = nil
	return rest
}

// close removes all votes and stops the retries.
func (w *withdrawals) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.pending = true, nil
}

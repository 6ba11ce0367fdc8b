package engine

import "time"

// onHint handles a message that named a token of this process, or, without a token, the
// report that messages may have been lost. It means: check the key again.
//
// Any client that may publish can forge a message, and repeat it. So a hint decides
// nothing about a lease. A waiter asks again, a holder assumes that other processes
// wait, and a dead token is released, which changes nothing unless the key holds it.
// The number of releases that hints cause is limited: see discardSet.
func (e *Engine) onHint(key, token string) {
	e.handleHint(key, token, e.discardHinted)
}

// onLateGrant handles the report that a command which was left behind has put a token
// of this process into a key.
func (e *Engine) onLateGrant(key, token string) {
	e.handleHint(key, token, func(p keyToken) { e.discardAsync(p, nil, time.Now().Add(discardTimeout)) })
}

// handleHint makes the queue of a key check the key again. A dead token is discarded
// instead. A token that the queue is just releasing is released once more after that.
func (e *Engine) handleHint(key, token string, discard func(keyToken)) {
	s := e.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[key]
	switch {
	case e.isDead(q, token):
		discard(keyToken{key, token})
	case q == nil || q.isLost(token): // the holder has been told of the loss
	case token != "" && !q.owns(token): // forged
	case token != "" && token == q.ballot:
		q.lastHint = time.Now() // others wait too; but after a split vote the pause must not be cut short
	case q.state == releasing && token == q.lease.token:
		q.lease.seenAgain = true
	default:
		q.handed = q.handed || token != ""
		q.lastHint = time.Now()
		if q.lease != nil {
			q.lease.othersWait = true
			q.lease.budget.start(q.lastHint)
		}
		q.wake()
	}
}

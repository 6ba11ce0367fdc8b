package engine

import "time"

// hint takes in that a message named a token of this process, or, without a token,
// that messages may have been lost. It means: look again.
//
// Anybody who may publish can forge a message, and repeat it. So a hint decides
// nothing about a lease: a waiter asks again, a holder assumes that other processes
// wait, and a dead token is released, which changes nothing where the key does not
// carry it. The releases that hints cause are bounded: see discards.
func (e *Engine) onHint(key, token string) {
	e.handleHint(key, token, e.discardHinted)
}

// lateGrant takes in that a command which was left behind has put a token of this
// process into a key.
func (e *Engine) onLateGrant(key, token string) {
	e.handleHint(key, token, func(p keyToken) { e.discardAsync(p, nil, time.Now().Add(discardTimeout)) })
}

// look makes the line of a key look again. A dead token is discarded instead, and one
// that the line is just releasing is released once more after that.
func (e *Engine) handleHint(key, token string, discard func(keyToken)) {
	s := e.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[key]
	switch {
	case e.isDead(q, token):
		discard(keyToken{key, token})
	case q == nil || q.isLost(token): // who holds it has been told
	case token != "" && !q.owns(token): // forged
	case token != "" && token == q.ballot:
		q.lastHint = time.Now() // others wait too. That is no reason to look again: a split vote needs its pause
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

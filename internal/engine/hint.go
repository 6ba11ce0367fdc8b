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
// of this process into a key. If the attempt of the token was aborted, it is aborted again. An
// attempt that has ended otherwise is not.
func (e *Engine) onLateGrant(key, token string) {
	e.handleHint(key, token, func(p keyToken) {
		e.discardAsync(p, e.discards.attemptOf(p), time.Now().Add(discardTimeout))
	})
}

// handleHint makes the queue that owns the token check the key again. Without a token, all
// queues of the key do. A dead token is discarded instead.
func (e *Engine) handleHint(key, token string, discard func(keyToken)) {
	s := e.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	root := s.queues[key]
	switch {
	case e.isDead(root, token):
		discard(keyToken{key, token})
	case root == nil:
	case token == "":
		for _, q := range root.allQueues() {
			q.checkAgain("")
		}
	default:
		if q := root.ownerOf(token); q != nil { // otherwise the hint is forged
			q.checkAgain(token)
		}
	}
}

// checkAgain handles a hint that named this token of the queue; "" is none. A token that
// the queue is just releasing is released once more after that.
func (q *queue) checkAgain(token string) {
	switch {
	case token != "" && q.isLost(token): // the holder has been told of the loss
	case token != "" && q.isOpen(token): // the commit frees the key
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
			q.root.shared.othersWaited = q.lastHint
		}
		q.wake()
	}
}

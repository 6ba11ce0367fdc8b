package engine

import "time"

// hint takes in that a message named a token of this process, or, without a token,
// that messages may have been lost. It means: look again.
//
// Anybody who may publish can forge a message, and repeat it. So a hint decides
// nothing about a lease: a waiter asks again, a holder assumes that other processes
// wait, and a dead token is released, which changes nothing where the key does not
// carry it. The releases that hints cause are bounded: see discards.
func (e *Engine) hint(key, token string) {
	e.look(key, token, e.spawnNamedDiscard)
}

// lateGrant takes in that a command which was left behind has put a token of this
// process into a key.
func (e *Engine) lateGrant(key, token string) {
	e.look(key, token, func(p place) { e.spawnDiscard(p, nil, time.Now().Add(discardPatience)) })
}

// look makes the line of a key look again. A dead token is discarded instead, and one
// that the line is just releasing is released once more after that.
func (e *Engine) look(key, token string, discard func(place)) {
	s := e.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[key]
	switch {
	case e.isDead(l, token):
		discard(place{key, token})
	case l == nil || l.isHaunted(token): // who holds it has been told
	case token != "" && !l.owns(token): // forged
	case token != "" && token == l.ballot:
		l.told = time.Now() // others wait too. That is no reason to look again: a split vote needs its pause
	case l.state == freeing && token == l.lease.token:
		l.lease.seenAgain = true
	default:
		l.promised = l.promised || token != ""
		l.told = time.Now()
		if l.lease != nil {
			l.lease.wanted = true
			l.lease.budget.limit(l.told)
		}
		l.wake()
	}
}

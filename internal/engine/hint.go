package engine

import "time"

// hintPatience is how long a token that a hint named is released again, if the
// store does not answer. The hint does not say how long its key lives.
const hintPatience = 15 * time.Second

// hint takes in that a token of this process was seen in a key, or, without a
// token, that hints may have been missed. It means: look again.
//
// Anybody who may publish can forge a hint, and repeat it. So a hint decides
// nothing about a lease: a waiter asks again, a holder assumes that other processes
// wait, and a dead token is released, which changes nothing where the key does not
// carry it. A token that the line is just releasing is released once more after that.
func (e *Engine) hint(key, token string) {
	s := e.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[key]
	switch {
	case e.isDead(l, token):
		e.spawnNamedDiscard(place{key, token})
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

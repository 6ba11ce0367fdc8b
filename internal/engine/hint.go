package engine

import "time"

// hintPatience is how long a token that a hint named is released again, if the
// store does not answer. The hint does not say how long its key lives.
const hintPatience = 15 * time.Second

// hint is told by the store that a token of this process was seen in a key, or,
// without a token, that hints may have been missed. It means: look again.
//
// A waiter asks again. A holder takes it that others wait. A token that is not
// meant to be in the key is released; one that is just being released, once
// more after that.
func (e *Engine) hint(key, token string) {
	s := e.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[key]
	switch {
	case token != "" && (l == nil || !l.owns(token)):
		e.spawnDiscard(key, token, nil, time.Now().Add(hintPatience))
	case l == nil || l.isHaunted(token): // who holds it has been told
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

package engine

import (
	"strconv"
	"strings"
)

// newToken returns the token of a new episode. The caller holds the mutex of the key's
// shard, and makes the key's queue own the token before it unlocks that: see isDead.
func (e *Engine) newToken() string {
	return e.process + ":" + strconv.FormatUint(e.tokens.Add(1), 10)
}

// hasIssued reports whether this process has issued a token, for any key. The process
// id and the counter are not secret, so a hint can name the next token before it is
// issued.
func (e *Engine) hasIssued(token string) bool {
	process, number, _ := strings.Cut(token, ":")
	if process != e.process || strings.HasPrefix(number, "0") {
		return false
	}
	n, err := strconv.ParseUint(number, 10, 64)
	return err == nil && n <= e.tokens.Load()
}

// isDead reports whether a token that was seen in a key is dead: this process has
// issued it, and the key's queue, nil if there is none, does not own it. A queue owns
// its token as soon as it is issued, and no token is issued twice. So a dead token
// stays dead, and may be released at any time. The caller holds the mutex of the key's
// shard.
func (e *Engine) isDead(q *queue, token string) bool {
	return e.hasIssued(token) && (q == nil || !q.owns(token))
}

// owns reports whether a token of this process may rightly be in the key or in the
// store's queue.
func (q *queue) owns(token string) bool {
	if q.isLost(token) {
		return true
	}
	switch q.state {
	case asking:
		return token == q.token || token == q.ballot
	case held, passing:
		return token == q.lease.token
	case releasing:
		return token == q.lease.token || token == q.rejoin
	case idle:
	}
	return false
}

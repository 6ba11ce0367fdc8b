package engine

import (
	"strconv"
	"strings"
)

// newToken returns the token of a new episode. The caller holds the mutex of the
// shard of the token's key, and makes the token one that the key's line owns before
// it unlocks: see isDead.
func (e *Engine) newToken() string {
	return e.process + ":" + strconv.FormatUint(e.episodes.Add(1), 10)
}

// hasIssued reports whether this process has issued a token, for whatever key. The
// process id and the counter are no secret, so a hint can name the next token
// before it is issued.
func (e *Engine) hasIssued(token string) bool {
	process, number, _ := strings.Cut(token, ":")
	if process != e.process || strings.HasPrefix(number, "0") {
		return false
	}
	n, err := strconv.ParseUint(number, 10, 64)
	return err == nil && n <= e.episodes.Load()
}

// isDead reports whether a token that was seen in a key is of no use any more: this
// process has issued it, and the key's line, nil if there is none, does not own it. A
// line owns its token as soon as it is issued, and no token is issued twice. So a dead
// token stays dead, and may be released at any time. The caller holds the mutex of the
// key's shard.
func (e *Engine) isDead(l *line, token string) bool {
	return e.hasIssued(token) && (l == nil || !l.owns(token))
}

// owns reports whether a token of this process is meant to be in the key, or
// in its line.
func (l *line) owns(token string) bool {
	if l.isHaunted(token) {
		return true
	}
	switch l.state {
	case asking:
		return token == l.token || token == l.ballot
	case held, passing:
		return token == l.lease.token
	case freeing:
		return token == l.lease.token || token == l.rejoin
	case idle:
	}
	return false
}

package engine

import (
	"strings"

	"github.com/reqlock/reqlock/internal/store"
)

// newToken returns the token of a new episode. The caller holds the mutex of the key's
// shard, and makes a queue of the key own the token before it unlocks that: see isDead.
func (e *Engine) newToken(limit store.Limit) string {
	return store.NewToken(e.process, limit, e.tokens.Add(1))
}

// hasIssued reports whether this process has issued a token, for any key. The process
// id and the counter are not secret, so a hint can name the next token before it is
// issued.
func (e *Engine) hasIssued(token string) bool {
	if !strings.HasPrefix(token, e.process) {
		return false
	}
	process, _, number, ok := store.ParseToken(token)
	return ok && process == e.process && number <= e.tokens.Load()
}

// limitOf returns the limit that a token of this process repeats.
func limitOf(token string) store.Limit {
	_, limit, _, _ := store.ParseToken(token)
	return limit
}

// isDead reports whether a token that was seen in a key is dead: this process has
// issued it, and no queue of the key owns it. root is nil if the key has no queue. A queue
// owns its token as soon as it is issued, and no number is issued twice, with any limit.
// So a dead token stays dead, and may be released at any time. The caller holds the mutex
// of the key's shard.
func (e *Engine) isDead(root *queue, token string) bool {
	return e.hasIssued(token) && (root == nil || root.ownerOf(token) == nil)
}

// ownerOf returns the queue of the key that owns the token; nil if there is none. The
// queue is the root.
func (q *queue) ownerOf(token string) *queue {
	if q.owns(token) {
		return q
	}
	for _, l := range q.shared.lists {
		for _, shared := range l.queues {
			if shared.owns(token) {
				return shared
			}
		}
	}
	return nil
}

// owns reports whether a token of this process may rightly be in the key or in the
// store's queue.
func (q *queue) owns(token string) bool {
	if q.isLost(token) || q.isOpen(token) {
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

package engine

import (
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// errNoAnswer is the doubt of a line that the store has not answered yet.
var errNoAnswer = errors.New("no answer yet")

// A state says what a line is doing; the package comment draws them.
type state int

const (
	idle state = iota
	asking
	held
	passing
	freeing
)

// A line is one key's state in this process. All of it is guarded by the
// mutex of its shard.
type line struct {
	engine *Engine
	shard  *shard
	key    string
	state  state

	first, last *waiter
	tries       int // how many of them may not wait

	// token names the episode while asking; once granted it is the lease's.
	token string
	// contended is true once the store, or a holder in this process, refused
	// somebody in this episode.
	contended bool
	// doubt is why the store's last command gave no answer; nil after one that
	// did. While it is set, nobody can say that the key is held by another.
	doubt error
	// alarm cuts the pause of the asking goroutine short; nil while it is not
	// pausing.
	alarm chan struct{}

	// lease is the store's grant, in the states held, passing and freeing.
	lease *lease
	// haunted holds the tokens of leases that were lost under holders who have
	// not come back yet: their keys must not be deleted under running code.
	haunted map[string]struct{}
}

// lineOf returns the line of a key, a new one if need be.
func (e *Engine) lineOf(s *shard, key string) *line {
	l := s.lines[key]
	if l == nil {
		l = &line{engine: e, shard: s, key: key, doubt: errNoAnswer}
		s.lines[key] = l
	}
	return l
}

// begin starts a new episode: the line asks the store for its first waiter.
func (l *line) begin() {
	l.state = asking
	l.lease = nil
	l.token = l.engine.newToken()
	l.contended = false
	ctx := l.first.hold.parent
	l.engine.spawn(func() { l.engine.ask(ctx, l) })
}

// proceed goes on after a lease is gone: with the next episode if somebody
// waits, else to rest.
func (l *line) proceed() {
	if l.first != nil {
		l.begin()
		return
	}
	l.rest()
}

// rest ends an episode in which nobody waits any more, and forgets the line
// unless a lost holder is still to come back.
func (l *line) rest() {
	l.state = idle
	l.token = ""
	l.lease = nil
	if len(l.haunted) == 0 {
		delete(l.shard.lines, l.key)
	}
}

// wake cuts the asking goroutine's pause short.
func (l *line) wake() {
	if l.alarm != nil {
		close(l.alarm)
		l.alarm = nil
	}
}

// owns reports whether a token of this process is meant to be in the key.
func (l *line) owns(token string) bool {
	if _, lost := l.haunted[token]; lost {
		return true
	}
	switch l.state {
	case asking:
		return token == l.token
	case held, passing, freeing:
		return token == l.lease.token
	case idle:
	}
	return false
}

// haunt remembers the token of a lease that was lost under a running holder.
func (l *line) haunt(token string) {
	if l.haunted == nil {
		l.haunted = make(map[string]struct{})
	}
	l.haunted[token] = struct{}{}
}

// exorcise forgets a haunted token: its holder came back.
func (l *line) exorcise(token string) {
	delete(l.haunted, token)
	if l.state == idle && len(l.haunted) == 0 {
		delete(l.shard.lines, l.key)
	}
}

// request returns the store's request for the line's key.
func (l *line) request(token string, r Request) store.Request {
	return store.Request{Key: l.key, Token: token, TTL: r.TTL, Bound: l.engine.boundOf(r.TTL)}
}

// hintPatience is how long a token that a hint named is released again, if the
// store does not answer. The hint does not say how long its key lives.
const hintPatience = 15 * time.Second

// hint is told by the store that a token of this process was seen in a key. It
// means: look again. A token that is not meant to be there is released; one
// that is just being released, once more after that.
func (e *Engine) hint(key, token string) {
	s := e.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[key]
	switch {
	case l == nil || !l.owns(token):
		over := time.Now().Add(hintPatience)
		e.spawn(func() { e.discard(key, token, over) })
	case l.state == freeing:
		l.lease.seenAgain = true
	default:
		l.wake()
	}
}

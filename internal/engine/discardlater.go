package engine

import (
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// laterPauses are the pauses before a token that was sent twice is looked after: after the last one,
// the network has delivered or lost the send that has no reply.
func laterPauses() [3]time.Duration {
	return [...]time.Duration{200 * time.Millisecond, 800 * time.Millisecond, 3 * time.Second}
}

// maxLater is how many tokens are looked after at a time. Without it, a key that a delayed send has
// taken for a dead token stays taken until a waiter of this process finds the token, another process
// names it in a hint, or the TTL ends.
const maxLater = 1024

// A laterSet has the tokens that are looked after, with the number of the next pause. A token has one
// place, also if a waiter asks again and again in an outage.
type laterSet struct {
	mu   sync.Mutex
	next map[keyToken]int
}

// restart begins the pauses of a token, or begins them again. It reports whether the token is new, and
// has a place.
func (s *laterSet) restart(p keyToken) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.next[p]
	if !found && len(s.next) == maxLater {
		return false
	}
	if s.next == nil {
		s.next = make(map[keyToken]int)
	}
	s.next[p] = 0
	return !found
}

// pause returns the next pause of a token. After the last one, it forgets the token, and returns false.
func (s *laterSet) pause(p keyToken) (pause time.Duration, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pauses, i := laterPauses(), s.next[p]
	if i == len(pauses) {
		delete(s.next, p)
		return 0, false
	}
	s.next[p] = i + 1
	return pauses[i], true
}

// discardLater discards the token of a request several times in the next seconds, if it is dead then.
// A send of the request may still be applied after the token was released, and its reply is lost. An
// attempt needs no such care: its record refuses a begin that comes after its end. Neither does a
// ballot, which is withdrawn.
func (e *Engine) discardLater(r store.EnqueueRequest) {
	p := keyToken{r.Key, r.Token}
	if r.Attempt == nil && !e.ballots && e.later.restart(p) {
		e.lookAfter(p)
	}
}

// lookAfter discards a token after each pause that is left. Close does not wait for a pause, but for a
// discard that has begun.
func (e *Engine) lookAfter(p keyToken) {
	pause, more := e.later.pause(p)
	if !more {
		return
	}
	time.AfterFunc(pause, func() {
		if !e.addWork() {
			return
		}
		defer e.work.Done()
		if e.mayDiscard(p) {
			e.discardAsync(p, nil, time.Time{})
		}
		e.lookAfter(p)
	})
}

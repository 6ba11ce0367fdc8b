package engine

import (
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// discardBounds is how many command bounds a try of discard may take.
const discardBounds = 4

// unknownTTL stands for the TTL of a lease of which only the token is known.
const unknownTTL = time.Minute

// mostNamed is how many tokens are discarded at a time because a hint named them, and
// how many in all once Close has begun, which waits for them. Hints can be forged. A
// dead token whose hint is ignored costs time: its key stays locked until the TTL
// ends, or until a waiter of this process finds the token.
const mostNamed = 64

// A place is where a token was seen: in a key, or in its line.
type place struct{ key, token string }

// discards are the tokens that are being discarded, so that many hints of one
// make few commands.
type discards struct {
	mu     sync.Mutex
	tokens map[place]discarded
	named  int // how many of them a hint named first; it only grows once Close has begun
}

// A discarded token is one of an attempt that is being aborted, or of none.
type discarded struct {
	attempt *Attempt
	again   bool // it was named again meanwhile
	named   bool // a hint named it first
}

// begin reports whether the token is to be discarded; if it is being discarded
// already, that will be done once more. A token that a hint named is ignored where
// there are too many of them.
func (d *discards) begin(p place, attempt *Attempt, named bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t, found := d.tokens[p]; found {
		t.again = true
		if attempt != nil {
			t.attempt = attempt
		}
		d.tokens[p] = t
		return false
	}
	if named {
		if d.named == mostNamed {
			return false
		}
		d.named++
	}
	if d.tokens == nil {
		d.tokens = make(map[place]discarded)
	}
	d.tokens[p] = discarded{attempt: attempt, named: named}
	return true
}

// attemptOf returns the attempt that is being aborted with a token; nil if there
// is none.
func (d *discards) attemptOf(p place) *Attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tokens[p].attempt
}

// end reports whether the token need not be discarded once more. closing says whether
// Close has begun: then a hint does not prolong what a hint has begun.
func (d *discards) end(p place, closing bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tokens[p]
	if t.again && (!t.named || !closing) {
		t.again = false
		d.tokens[p] = t
		return false
	}
	if t.named && !closing {
		d.named--
	}
	delete(d.tokens, p)
	return true
}

// spawnDiscard discards a token on a goroutine of its own, and aborts its attempt,
// if there is one: that is tried for abortPatience instead of until over.
func (e *Engine) spawnDiscard(p place, attempt *Attempt, over time.Time) {
	if attempt != nil {
		over = time.Now().Add(abortPatience)
	}
	if e.discards.begin(p, attempt, false) {
		e.spawnDiscarding(p, over)
	}
}

// spawnNamedDiscard discards a token that a hint named, unless hints named too many
// others.
func (e *Engine) spawnNamedDiscard(p place) {
	if e.discards.begin(p, nil, true) {
		e.spawnDiscarding(p, time.Now().Add(hintPatience))
	}
}

// spawnDiscarding discards a token that is known to the discards.
func (e *Engine) spawnDiscarding(p place, over time.Time) {
	e.spawn(func() {
		for ended := false; !ended; ended = e.discards.end(p, e.isClosing()) {
			e.discard(p, e.discards.attemptOf(p), over)
		}
	})
}

// abortPatience is how long an attempt that has not run is aborted again, if the
// store does not answer. What is left of it later looks like one that died.
const abortPatience = time.Minute

// discard releases a dead token, so that it holds neither its key until the TTL
// nor a place in the line; a key that it holds is handed on. It tries at least
// once, and again until over, as long as the store does not answer. Once the
// engine is being closed it tries only once more, but for attempts, whose records
// stay longer than a key: for commitTime.
//
// Nobody waits for it, so each try may take several command bounds: a client
// that is short of connections is not helped by more commands.
func (e *Engine) discard(p place, attempt *Attempt, over time.Time) {
	r := store.Request{
		Key: p.key, Token: p.token, Bound: discardBounds * e.bound, Claim: e.claimOf(unknownTTL), Attempt: attempt,
	}
	closing := e.closing
	for tries, last := 0, false; e.isDiscardable(p); tries++ {
		err := e.releaseAndWait(r)
		if err == nil || last || !faultOf(err).Passing || time.Now().After(over) {
			return
		}
		timer := time.NewTimer(backoff(tries))
		select {
		case <-timer.C:
		case <-closing:
			timer.Stop()
			last = attempt == nil
			closing, over = nil, earlier(over, time.Now().Add(commitTime))
		}
	}
}

// isDiscardable reports whether a token is dead. It is asked before each release: a
// release of a token that a line owns would free the key under its holder.
func (e *Engine) isDiscardable(p place) bool {
	s := e.shardOf(p.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.isDead(s.lines[p.key], p.token)
}

// earlier returns the earlier one of two times.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// releaseAndWait releases a token and returns the fault that kept the store
// from being told, if any.
func (e *Engine) releaseAndWait(r store.Request) error {
	answered := make(chan error, 1)
	e.store.Release(r, func(_ store.Released, err error) { answered <- err })
	return <-answered
}

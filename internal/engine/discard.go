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

// discards are the tokens that are being discarded, so that many hints of one
// make few commands.
type discards struct {
	mu     sync.Mutex
	tokens map[string]discarded
}

// A discarded token is one of an attempt that is being aborted, or of none.
type discarded struct {
	attempt *Attempt
	again   bool // it was named again meanwhile
}

// begin reports whether the token is to be discarded; if it is being discarded
// already, that will be done once more.
func (d *discards) begin(token string, attempt *Attempt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t, found := d.tokens[token]; found {
		t.again = true
		if attempt != nil {
			t.attempt = attempt
		}
		d.tokens[token] = t
		return false
	}
	if d.tokens == nil {
		d.tokens = make(map[string]discarded)
	}
	d.tokens[token] = discarded{attempt: attempt}
	return true
}

// attemptOf returns the attempt that is being aborted with a token; nil if there
// is none.
func (d *discards) attemptOf(token string) *Attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tokens[token].attempt
}

// end reports whether the token need not be discarded once more.
func (d *discards) end(token string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tokens[token]; t.again {
		t.again = false
		d.tokens[token] = t
		return false
	}
	delete(d.tokens, token)
	return true
}

// spawnDiscard discards a token on a goroutine of its own, and aborts its attempt,
// if there is one: that is tried for abortPatience instead of until over.
func (e *Engine) spawnDiscard(key, token string, attempt *Attempt, over time.Time) {
	if attempt != nil {
		over = time.Now().Add(abortPatience)
	}
	if e.discards.begin(token, attempt) {
		e.spawnDiscarding(key, token, over)
	}
}

// spawnDiscarding discards a token that is known to the discards.
func (e *Engine) spawnDiscarding(key, token string, over time.Time) {
	e.spawn(func() {
		for ended := false; !ended; ended = e.discards.end(token) {
			e.discard(key, token, e.discards.attemptOf(token), over)
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
func (e *Engine) discard(key, token string, attempt *Attempt, over time.Time) {
	r := store.Request{
		Key: key, Token: token, Bound: discardBounds * e.bound, Claim: e.claimOf(unknownTTL), Attempt: attempt,
	}
	closing := e.closing
	for tries, last := 0, false; ; tries++ {
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

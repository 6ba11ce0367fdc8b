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
// make few commands. A token's value is true if it was named again meanwhile.
type discards struct {
	mu     sync.Mutex
	tokens map[string]bool
}

// begin reports whether the token is to be discarded; if it is being discarded
// already, that will be done once more.
func (d *discards) begin(token string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, found := d.tokens[token]; found {
		d.tokens[token] = true
		return false
	}
	if d.tokens == nil {
		d.tokens = make(map[string]bool)
	}
	d.tokens[token] = false
	return true
}

// end reports whether the token need not be discarded once more.
func (d *discards) end(token string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tokens[token] {
		d.tokens[token] = false
		return false
	}
	delete(d.tokens, token)
	return true
}

// spawnDiscard discards a token on a goroutine of its own.
func (e *Engine) spawnDiscard(key, token string, over time.Time) {
	if e.discards.begin(token) {
		e.spawn(func() {
			for ended := false; !ended; ended = e.discards.end(token) {
				e.discard(key, token, over)
			}
		})
	}
}

// discard releases a dead token, so that it holds neither its key until the TTL
// nor a place in the line; a key that it holds is handed on. It tries at least
// once, and again until over, as long as the store does not answer. Once the
// engine is being closed it tries only once more.
//
// Nobody waits for it, so each try may take several command bounds: a client
// that is short of connections is not helped by more commands.
func (e *Engine) discard(key, token string, over time.Time) {
	r := store.Request{Key: key, Token: token, Bound: discardBounds * e.bound, Claim: e.claimOf(unknownTTL)}
	for tries, last := 0, false; ; tries++ {
		err := e.releaseAndWait(r)
		if err == nil || last || !faultOf(err).Passing || time.Now().After(over) {
			return
		}
		timer := time.NewTimer(backoff(tries))
		select {
		case <-timer.C:
		case <-e.closing:
			timer.Stop()
			last = true
		}
	}
}

// releaseAndWait releases a token and returns the fault that kept the store
// from being told, if any.
func (e *Engine) releaseAndWait(r store.Request) error {
	answered := make(chan error, 1)
	e.store.Release(r, func(_ store.Released, err error) { answered <- err })
	return <-answered
}

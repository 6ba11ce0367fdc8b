package engine

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// discardBounds is how many command bounds a try of discard may take.
const discardBounds = 4

// discardPatience is how long a token is released again, if the store does not answer,
// and if it is not known how long its key lives.
const discardTimeout = 15 * time.Second

// unknownTTL stands for the TTL of a lease of which only the token is known.
const unknownTTL = time.Minute

// spawnDiscard discards a token on a goroutine of its own, and aborts its attempt,
// if there is one: that is tried for abortPatience instead of until over.
func (e *Engine) discardAsync(p keyToken, attempt *Attempt, over time.Time) {
	if attempt != nil {
		over = time.Now().Add(abortTimeout)
	}
	if e.discards.claim(p, attempt) {
		e.runDiscard(p, over)
	}
}

// spawnNamedDiscard discards a token that a hint named, unless hints named too many
// others, or Close has begun, which waits for it. It tries once: the next hint repeats
// it, and a key whose server does not answer is not to take the place of others.
func (e *Engine) discardHinted(p keyToken) {
	if !e.isClosing() && e.discards.claimHinted(p) {
		e.runDiscard(p, time.Time{})
	}
}

// spawnDiscarding discards a token that is known to the discards.
func (e *Engine) runDiscard(p keyToken, over time.Time) {
	e.spawn(func() {
		for ended := false; !ended; ended = e.discards.complete(p) {
			e.discard(p, e.discards.attemptOf(p), over)
		}
	})
}

// abortPatience is how long an attempt that has not run is aborted again, if the
// store does not answer. What is left of it later looks like one that died.
const abortTimeout = time.Minute

// discard releases a dead token, so that it holds neither its key until the TTL
// nor a place in the line; a key that it holds is handed on. It tries at least
// once, and again until over, as long as the store does not answer. Once the
// engine is being closed it tries only once more, but for attempts, whose records
// stay longer than a key: for commitTime.
//
// Nobody waits for it, so each try may take several command bounds: a client
// that is short of connections is not helped by more commands.
func (e *Engine) discard(p keyToken, attempt *Attempt, over time.Time) {
	r := store.Request{
		Key: p.key, Token: p.token, Bound: discardBounds * e.bound, Claim: e.claimOf(unknownTTL), Attempt: attempt,
	}
	closing := e.closing
	for tries, last := 0, false; e.mayDiscard(p); tries++ {
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
			closing, over = nil, earlier(over, time.Now().Add(commitTimeout))
		}
	}
}

// isDiscardable reports whether a token is dead. It is asked before each release: a
// release of a token that a line owns would free the key under its holder.
func (e *Engine) mayDiscard(p keyToken) bool {
	s := e.shardOf(p.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.isDead(s.queues[p.key], p.token)
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

// release sends a release, and until over sends it again where the store did not
// answer.
func (e *Engine) releaseUntil(r store.Request, over time.Time, done func(store.Released, error)) {
	tries, unknown := 0, false // unknown: an earlier try may have released the key
	var try func(store.Released, error)
	try = func(released store.Released, err error) {
		switch {
		case err != nil && faultOf(err).Passing && time.Now().Before(over):
			unknown = unknown || faultOf(err).Unknown
			r.Inline = false
			tries++
			time.AfterFunc(backoff(tries-1), func() { e.store.Release(r, try) })
			return
		case unknown && released.End == store.NotHeld:
			released.End = store.Unsure
		}
		done(released, err)
	}
	e.store.Release(r, try)
}

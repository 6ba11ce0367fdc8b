package engine

import (
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/backoff"
	"github.com/reqlock/reqlock/internal/store"
)

// discardBounds is how many command bounds one send of discard may take.
const discardBounds = 4

// discardTimeout is how long discard resends a release while the store does not answer,
// if the remaining TTL of the key is not known.
const discardTimeout = 15 * time.Second

// unknownTTL stands for the TTL of a lease of which only the token is known.
const unknownTTL = time.Minute

// discardAsync discards a token on its own goroutine. With an attempt it aborts that,
// and retries for abortTimeout instead of until over.
func (e *Engine) discardAsync(p keyToken, attempt *Attempt, over time.Time) {
	if attempt != nil {
		over = time.Now().Add(abortTimeout)
	}
	if e.discards.add(p, attempt) {
		e.runDiscard(p, over)
	}
}

// discardHinted discards a token that a hint named. It does nothing if hints named too
// many others, or if Close, which waits for discards, has begun. It sends one release
// only: the next hint causes another, and a key of a server that does not answer must
// not occupy one of the few places.
func (e *Engine) discardHinted(p keyToken) {
	if !e.isClosing() && e.discards.addHinted(p) {
		e.runDiscard(p, time.Time{})
	}
}

// runDiscard discards a token that the caller has added to the set.
func (e *Engine) runDiscard(p keyToken, over time.Time) {
	e.spawn(func() {
		for ended := false; !ended; ended = e.discards.complete(p) {
			e.discard(p, e.discards.attemptOf(p), over)
		}
	})
}

// abortTimeout is how long the engine retries the abort of an attempt that has not run,
// while the store does not answer. After that, the record looks as if the attempt had
// died.
const abortTimeout = time.Minute

// discard releases a dead token, so that it blocks neither its key until the TTL nor a
// place in the store's queue. If the key holds the token, the store hands the key on.
// discard sends at least one release, and resends it until over while the store does
// not answer. Once Close has begun, it sends one more only. Exception: the record of an
// attempt lives longer than a key, so an abort is retried for commitTimeout.
//
// No caller waits for discard, so each send may take several command bounds: more
// commands do not help a client that is short of connections.
//
// While the key has an open commit, an abort ends only with Close: the commit waits for it.
func (e *Engine) discard(p keyToken, attempt *Attempt, over time.Time) {
	r := store.ReleaseRequest{
		Target: store.Target{Key: p.key, Limit: limitOf(p.token), Token: p.token, Bound: discardBounds * e.bound},
		Claim:  e.claimOf(unknownTTL),
	}
	r = EndAbort.applyTo(r, attempt, nil)
	closing := e.closing
	for retries, last := 0, false; e.mayDiscard(p); retries++ {
		err := e.releaseAndWait(r)
		if err == nil || last || !store.FaultOf(err).Temporary {
			return
		}
		if time.Now().After(over) && (attempt == nil || e.isClosing() || !e.hasOpen(p.key)) {
			return
		}
		timer := time.NewTimer(backoff.Pause(retries, minPause, maxPause))
		select {
		case <-timer.C:
		case <-closing:
			timer.Stop()
			last = attempt == nil
			closing, over = nil, earlier(over, time.Now().Add(commitTimeout))
		}
	}
}

// mayDiscard reports whether a token is dead. It is checked before each release,
// because the release of a token that a queue owns would free the key under its holder.
func (e *Engine) mayDiscard(p keyToken) bool {
	s := e.shardOf(p.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	isTicket := !strings.HasPrefix(p.token, e.process) // no caller has got it: see discardTicket
	return isTicket || e.isDead(s.queues[p.key], p.token)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// releaseAndWait releases a token and returns the fault, if any.
func (e *Engine) releaseAndWait(r store.ReleaseRequest) error {
	answered := make(chan error, 1)
	e.store.Release(r, func(_ store.ReleaseResult, err error) { answered <- err })
	return <-answered
}

// releaseUntil releases a token, and resends that until over while the store does not
// answer.
func (e *Engine) releaseUntil(r store.ReleaseRequest, over time.Time, done func(store.ReleaseResult, error)) {
	retries, unknown := 0, false // unknown: an earlier send may have released the key
	var onResult func(store.ReleaseResult, error)
	onResult = func(released store.ReleaseResult, err error) {
		switch {
		case err != nil && store.FaultOf(err).Temporary && time.Now().Before(over):
			unknown = unknown || store.FaultOf(err).Unknown
			r.Inline = false
			retries++
			time.AfterFunc(backoff.Pause(retries-1, minPause, maxPause), func() { e.store.Release(r, onResult) })
			return
		case unknown && released.Status == store.NotHeld:
			released.Status = store.Unsure
		}
		done(released, err)
	}
	e.store.Release(r, onResult)
}

package engine

import (
	"sync"
	"time"
)

// maxHinted is how many tokens are discarded at a time because a hint named them. A
// hint can be forged. To ignore the hint of a dead token costs time only: the key stays
// locked until its TTL ends, until the next hint, or until a waiter of this process
// finds the token.
const maxHinted = 64

// maxAborted is how many aborted attempts a discardSet remembers.
const maxAborted = 10_000

// A keyToken is a token, and the key in which it was seen, or in the queue of which.
type keyToken struct{ key, token string }

// A discardSet has the tokens that are being discarded, so that many hints of one token
// cause few commands. It remembers the attempts that were aborted for abortTimeout. The store
// keeps only the last abort of a key, so a begin that the network has delayed can still lock the
// key and write the record of an attempt that nobody runs. Then the attempt is aborted again.
type discardSet struct {
	mu      sync.Mutex
	entries map[keyToken]discardEntry
	hinted  int            // entries that only a hint has named
	aborts  map[string]int // entries with an attempt, by key
	aborted map[keyToken]*Attempt
	oldest  []abortedAttempt // those of aborted, the oldest one first
}

// An abortedAttempt is the token of an attempt, and when the discardSet forgets it.
type abortedAttempt struct {
	keyToken
	until time.Time
}

// A discardEntry is what is known of a token that is being discarded.
type discardEntry struct {
	attempt *Attempt
	repeat  bool // discard the token once more after this time
	hinted  bool // only a hint has named the token
}

// add adds a token, and reports whether the caller has to discard it. If the token is being
// discarded already, it will be discarded once more after that.
func (d *discardSet) add(p keyToken, attempt *Attempt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, found := d.entries[p]
	if t.hinted {
		t.hinted = false
		d.hinted--
	}
	t.repeat = found
	if attempt != nil {
		if t.attempt == nil {
			d.countAbort(p.key, 1)
		}
		t.attempt = attempt
	}
	d.put(p, t)
	return !found
}

// addHinted is add for a token that only a hint has named. It ignores the hint if
// there are too many of them.
func (d *discardSet) addHinted(p keyToken) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, found := d.entries[p]
	if !found && d.hinted == maxHinted {
		return false
	}
	if !found {
		t.hinted = true
		d.hinted++
	}
	t.repeat = found
	d.put(p, t)
	return !found
}

// put stores the entry of a token. The caller holds the mutex.
func (d *discardSet) put(p keyToken, t discardEntry) {
	if d.entries == nil {
		d.entries = make(map[keyToken]discardEntry)
	}
	d.entries[p] = t
}

// attemptOf returns the attempt that is aborted together with a token, or was; nil if there is
// none.
func (d *discardSet) attemptOf(p keyToken) *Attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.entries[p]; t.attempt != nil {
		return t.attempt
	}
	return d.aborted[p]
}

// noteAborted notes that a release has aborted the attempt of a token, which is not discarded.
func (d *discardSet) noteAborted(p keyToken, attempt *Attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remember(p, attempt)
}

// remember adds an attempt that was aborted, and forgets old ones. The caller holds the mutex.
func (d *discardSet) remember(p keyToken, attempt *Attempt) {
	now := time.Now()
	for len(d.oldest) == maxAborted || len(d.oldest) > 0 && now.After(d.oldest[0].until) {
		delete(d.aborted, d.oldest[0].keyToken)
		d.oldest = d.oldest[1:]
	}
	if d.aborted[p] != nil {
		return
	}
	if d.aborted == nil {
		d.aborted = make(map[keyToken]*Attempt)
	}
	d.aborted[p] = attempt
	d.oldest = append(d.oldest, abortedAttempt{p, now.Add(abortTimeout)})
}

// complete ends one discard of the token. It reports false if the token has to be
// discarded once more.
func (d *discardSet) complete(p keyToken) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.entries[p]
	if t.repeat {
		t.repeat = false
		d.entries[p] = t
		return false
	}
	if t.hinted {
		d.hinted--
	}
	if t.attempt != nil {
		d.countAbort(p.key, -1)
		d.remember(p, t.attempt)
	}
	delete(d.entries, p)
	return true
}

// countAbort changes the number of entries with an attempt. The caller holds the mutex.
func (d *discardSet) countAbort(key string, by int) {
	if d.aborts == nil {
		d.aborts = make(map[string]int)
	}
	if d.aborts[key] += by; d.aborts[key] == 0 {
		delete(d.aborts, key)
	}
}

// isAborting reports whether an attempt of the key is aborted together with its token.
func (d *discardSet) isAborting(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.aborts[key] > 0
}

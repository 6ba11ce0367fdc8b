package engine

import "sync"

// mostNamed is how many tokens are discarded at a time because a hint named them. A
// hint can be forged. If the hint of a dead token is ignored, that costs time: the key
// stays locked until the TTL ends, or until the next hint, or until a waiter of this
// process finds the token.
const maxHinted = 64

// A place is where a token was seen: in a key, or in its line.
type keyToken struct{ key, token string }

// discards are the tokens that are being discarded, so that many hints of one
// make few commands.
type discardSet struct {
	mu      sync.Mutex
	entries map[keyToken]discardEntry
	hinted  int // how many of them only a hint has named
}

// A discarded token is one of an attempt that is being aborted, or of none.
type discardEntry struct {
	attempt *Attempt
	repeat  bool // it was to be discarded again meanwhile
	hinted  bool // only a hint has named it
}

// begin reports whether the token is to be discarded; if it is being discarded
// already, that will be done once more.
func (d *discardSet) claim(p keyToken, attempt *Attempt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, found := d.entries[p]
	if t.hinted {
		t.hinted = false
		d.hinted--
	}
	t.repeat = found
	if attempt != nil {
		t.attempt = attempt
	}
	d.put(p, t)
	return !found
}

// beginNamed is begin for a token that only a hint has named. The hint is ignored
// where there are too many of them.
func (d *discardSet) claimHinted(p keyToken) bool {
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

// put keeps what is known of a token. The caller holds the mutex.
func (d *discardSet) put(p keyToken, t discardEntry) {
	if d.entries == nil {
		d.entries = make(map[keyToken]discardEntry)
	}
	d.entries[p] = t
}

// attemptOf returns the attempt that is being aborted with a token; nil if there
// is none.
func (d *discardSet) attemptOf(p keyToken) *Attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[p].attempt
}

// end reports whether the token need not be discarded once more.
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
	delete(d.entries, p)
	return true
}

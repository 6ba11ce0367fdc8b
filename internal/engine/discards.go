package engine

import "sync"

// mostNamed is how many tokens are discarded at a time because a hint named them. A
// hint can be forged. If the hint of a dead token is ignored, that costs time: the key
// stays locked until the TTL ends, or until the next hint, or until a waiter of this
// process finds the token.
const mostNamed = 64

// A place is where a token was seen: in a key, or in its line.
type place struct{ key, token string }

// discards are the tokens that are being discarded, so that many hints of one
// make few commands.
type discards struct {
	mu     sync.Mutex
	tokens map[place]discarded
	named  int // how many of them only a hint has named
}

// A discarded token is one of an attempt that is being aborted, or of none.
type discarded struct {
	attempt *Attempt
	again   bool // it was to be discarded again meanwhile
	named   bool // only a hint has named it
}

// begin reports whether the token is to be discarded; if it is being discarded
// already, that will be done once more.
func (d *discards) begin(p place, attempt *Attempt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, found := d.tokens[p]
	if t.named {
		t.named = false
		d.named--
	}
	t.again = found
	if attempt != nil {
		t.attempt = attempt
	}
	d.put(p, t)
	return !found
}

// beginNamed is begin for a token that only a hint has named. The hint is ignored
// where there are too many of them.
func (d *discards) beginNamed(p place) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, found := d.tokens[p]
	if !found && d.named == mostNamed {
		return false
	}
	if !found {
		t.named = true
		d.named++
	}
	t.again = found
	d.put(p, t)
	return !found
}

// put keeps what is known of a token. The caller holds the mutex.
func (d *discards) put(p place, t discarded) {
	if d.tokens == nil {
		d.tokens = make(map[place]discarded)
	}
	d.tokens[p] = t
}

// attemptOf returns the attempt that is being aborted with a token; nil if there
// is none.
func (d *discards) attemptOf(p place) *Attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tokens[p].attempt
}

// end reports whether the token need not be discarded once more.
func (d *discards) end(p place) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tokens[p]
	if t.again {
		t.again = false
		d.tokens[p] = t
		return false
	}
	if t.named {
		d.named--
	}
	delete(d.tokens, p)
	return true
}

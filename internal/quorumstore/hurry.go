package quorumstore

import "time"

const (
	// A ballot waits for the rest of the servers for so many times as long as the
	// majority took that has answered, and no less than shortestHurry.
	hurryFactor   = 2
	shortestHurry = 10 * time.Millisecond
)

// hurry bounds the wait for servers that have not answered, once a majority has and
// some of them have voted for others. Servers that are dead or cut off may be the
// ones that are missing: then the votes of this ballot would be in the way of all
// others until a command's bound is over. It is never wrong to give a ballot up. The
// caller holds b.mu.
func (b *ballot) hurry() {
	if b.hurries || !b.contested() {
		return
	}
	b.hurries = true
	b.store.work.Add()
	time.AfterFunc(max(hurryFactor*time.Since(b.begun), shortestHurry), b.giveUp)
}

// contested reports whether a majority has answered, and has not voted for this
// ballot alone.
func (b *ballot) contested() bool {
	count, majority := b.count(), b.store.majority
	return count.granted < majority && count.granted+count.refused >= majority
}

// giveUp makes the ballot a lost one, unless it was decided meanwhile.
func (b *ballot) giveUp() {
	defer b.store.work.Done()
	b.mu.Lock()
	gives := !b.decided && b.contested()
	if gives {
		b.answer, b.err = b.refused()
		b.decided, b.over = true, true
	}
	b.mu.Unlock()
	if gives {
		b.tell()
	}
}

package quorumstore

import "time"

const (
	// The rest of the servers is waited for as many times as long as the majority
	// took that has answered, and no less than shortestHurry; by a ballot also as
	// many times as long as they took before.
	hurryFactor   = 2
	shortestHurry = 10 * time.Millisecond
)

// hurry calls f when servers that have not answered since then have had time enough,
// though a command may take longer: they may be dead, or cut off. They have at least
// the least time, from now on.
func (s *Store) hurry(since time.Time, least time.Duration, f func()) {
	s.work.Add()
	time.AfterFunc(max(hurryFactor*time.Since(since), least), func() {
		defer s.work.Done()
		f()
	})
}

// hurry bounds the wait for servers that have not answered, once a majority has and
// some of them have voted for others. If those are missing that are dead, the votes
// of this ballot would be in the way of all others until a command's bound is over.
// It is never wrong to give a ballot up, but one that never waited for a server that is
// far would never have its vote. The caller holds b.mu.
func (b *ballot) hurry() {
	if b.hurries || !b.contested() {
		return
	}
	b.hurries = true
	b.store.hurry(b.begun, max(min(hurryFactor*b.distance(), b.request.Bound), shortestHurry), b.giveUp)
}

// distance returns how long the slowest one took before of those that have not answered.
func (b *ballot) distance() (longest time.Duration) {
	for i, v := range b.votes {
		if !v.answered {
			longest = max(longest, b.store.muster.distance(i))
		}
	}
	return longest
}

// contested reports whether a majority has answered, and has not voted for this
// ballot alone. It does not before it is known that the rest is none of them.
func (b *ballot) contested() bool {
	count, majority := b.count(), b.store.majority
	return count.granted < majority && count.granted+count.refused >= majority && b.knowsRest()
}

// giveUp makes the ballot a lost one, unless it was decided meanwhile.
func (b *ballot) giveUp() {
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

package quorumstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/inflight"
)

const (
	// stragglerFactor limits the wait for the remaining servers after a majority has
	// replied. The wait is this many times as long as the majority took. In a ballot it is
	// at least this many times the last latency of the remaining servers.
	stragglerFactor = 2
	// minStragglerWait is the shortest wait for the remaining servers.
	minStragglerWait = 10 * time.Millisecond
)

// A stragglerWait is the limited wait of an operation for the servers without a reply.
type stragglerWait struct {
	timer *time.Timer
	work  *inflight.Counter
}

// boundStragglers calls f after the servers without a reply have had enough time since the
// operation began, unless the wait ends before. The command of a server may take longer: the
// server may be down or unreachable. The servers have at least the least time from now on.
func (s *Store) boundStragglers(begun time.Time, least time.Duration, f func()) *stragglerWait {
	s.work.Add()
	return &stragglerWait{time.AfterFunc(max(stragglerFactor*time.Since(begun), least), func() {
		defer s.work.Done()
		f()
	}), &s.work}
}

// end stops the timer of an operation that is decided: otherwise Close would wait for the
// timer. It may be called several times, and without a wait.
func (w *stragglerWait) end() {
	if w != nil && w.timer.Stop() {
		w.work.Done()
	}
}

// boundStragglers limits the wait for the remaining servers, once a majority has replied and
// the votes are split. If the remaining servers are down, the votes of this ballot would
// otherwise block all other ballots until the bound of the command. It is always safe to give
// up a ballot. But the wait must depend on the latency of the remaining servers: otherwise
// the vote of a distant server would never be used. The caller holds b.mu.
func (b *ballot) boundStragglers() {
	if b.stragglers != nil || !b.mayGiveUp() {
		return
	}
	least := max(min(stragglerFactor*b.latency(), b.request.Bound), minStragglerWait)
	b.stragglers = b.store.boundStragglers(b.begun, least, b.giveUp)
}

// latency returns the longest last latency of the servers that have not replied.
func (b *ballot) latency() (longest time.Duration) {
	for i, v := range b.votes {
		if !v.answered {
			longest = max(longest, b.store.membership.latency(i))
		}
	}
	return longest
}

// mayGiveUp reports whether a majority has replied, but has not granted the ballot. It
// returns false while a remaining server is unknown: that server may be the same as one that
// has replied.
func (b *ballot) mayGiveUp() bool {
	count, majority := b.count(), b.store.majority
	return count.granted < majority && count.granted+count.refused >= majority && b.restKnown()
}

// giveUp decides that the ballot is lost, unless the ballot is decided.
func (b *ballot) giveUp() {
	b.mu.Lock()
	givesUp := !b.decided && b.mayGiveUp()
	if givesUp {
		b.answer, b.err = b.refused()
		b.decided, b.withdrawn = true, true
	}
	b.mu.Unlock()
	if givesUp {
		b.deliver()
	}
}

package validate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// lowLeaseFences finds leases without a fencing number, and leases whose number is not
// above that of each lease of the same key whose grant had returned before they were
// requested. Attempts may have no number. All leases of a key may have none if other keys
// have numbers. If no client asked for numbers, as on a quorum, nothing is checked.
//
// A server reserves a block of numbers for a process, which uses them for the leases that
// it hands off. So a stale lease gets a number of a block that was reserved before the
// loss: it is compared only with leases of the same block. A lease that was requested after
// the loss must still have a higher number than all of them: a block begins at the server's
// time in microseconds, or after the counter if that is higher.
//
// Shared leases of one phase have the same number, so the number of a shared lease may equal
// that of an earlier shared lease. A lagging replica that takes over may still have a phase
// that had ended: see joinsOldPhase.
func lowLeaseFences(s *summary) (found []Violation) {
	if s.Unfenced {
		return nil
	}
	fenced := map[lock]bool{}
	for _, l := range s.byName {
		if !l.lock.attempt && l.grant.Fence > 0 {
			fenced[l.lock] = true
		}
	}
	for _, key := range s.locks {
		granted := s.leases[key]
		asked := slices.Clone(granted)
		slices.SortStableFunc(asked, func(a, b *lease) int { return cmp.Compare(a.grant.Call, b.grant.Call) })
		var highest *lease           // of the leases whose grant had returned
		block := map[string]*lease{} // the same, by episode
		next := 0
		for _, l := range asked {
			if !key.attempt && l.grant.Fence <= 0 && (fenced[key] || len(fenced) == 0) {
				found = append(found, Violation{Check: checkFences, Text: callName(l.grant) + ", was granted without a fence"})
			}
			for ; granted[next].grant.Return < l.grant.Call; next++ {
				one := granted[next]
				highest = higherFence(highest, one)
				if one.grant.Episode != "" {
					block[one.grant.Episode] = higherFence(block[one.grant.Episode], one)
				}
			}
			before := highest
			if l.isStale() {
				before = block[l.grant.Episode]
			}
			if before != nil && before.grant.Fence != 0 && !mayFollow(l.grant, before.grant) && !joinsOldPhase(l, granted[:next]) {
				found = append(found, Violation{Check: checkFences, Text: fmt.Sprintf(
					"%s was granted after %s", callName(l.grant), callName(before.grant))})
			}
		}
	}
	return found
}

// mayFollow reports whether the fencing number of a lease may follow that of an earlier one.
func mayFollow(next, before *history.Op) bool {
	return next.Fence > before.Fence || next.Fence == before.Fence && next.IsShared() && before.IsShared()
}

// higherFence returns the lease with the higher fencing number.
func higherFence(a, b *lease) *lease {
	if a == nil || b.grant.Fence > a.grant.Fence {
		return b
	}
	return a
}

// joinsOldPhase reports whether a shared lease joined a phase that a lagging replica still had
// when it took over, as far as the earlier leases with higher numbers show: the phase began
// before the end of a loss, and the loss may have removed all those leases. A resource that
// has seen their numbers refuses the number of such a phase, which is safe.
func joinsOldPhase(l *lease, earlier []*lease) bool {
	begun := int64(never) // the beginning of the first loss that ended after a request of the phase
	for _, one := range earlier {
		if one.grant.Fence == l.grant.Fence && one.grant.IsShared() && l.grant.IsShared() {
			begun = min(begun, one.lossFrom)
		}
	}
	return begun != never && !slices.ContainsFunc(earlier, func(one *lease) bool {
		return one.grant.Fence > l.grant.Fence && (one.lossFrom < begun || one.lossFrom > l.grant.Return)
	})
}

// lowFastFences finds fencing numbers of clients at full speed that are not above all
// numbers of earlier holders, whose grants had returned before the lock was requested. It
// returns one violation for each key.
//
// No other check covers these leases: there are too many of them for a search for an order.
func lowFastFences(s *summary) (found []Violation) {
	granted := map[string][]*history.FastLease{}
	for i := range s.FastLeases {
		d := &s.FastLeases[i]
		granted[d.Key] = append(granted[d.Key], d)
	}
	for _, key := range slices.Sorted(maps.Keys(granted)) {
		if text := lowFences(granted[key]); text != "" {
			found = append(found, Violation{Check: checkFences, Text: text})
		}
	}
	return append(found, aheadCounters(s)...)
}

// aheadCounters finds counters that were ahead of the clock of their server when they were
// deleted. The next number is that clock, so it may be below a number that was granted or
// reserved before. On a fast machine lowFastFences finds such numbers, too.
func aheadCounters(s *summary) (found []Violation) {
	most, times := map[string]history.AheadCounter{}, map[string]int{}
	for _, one := range s.AheadCounters {
		times[one.Key]++
		if one.By > most[one.Key].By {
			most[one.Key] = one
		}
	}
	for _, key := range slices.Sorted(maps.Keys(most)) {
		found = append(found, Violation{Check: checkFences, Text: fmt.Sprintf(
			"the counter of %s was ahead of the server's clock %d times when it was deleted, at %d by %v", key, times[key], most[key].At,
			time.Duration(most[key].By))})
	}
	return found
}

// lowFences describes the numbers of a key that are too low, or returns "".
func lowFences(granted []*history.FastLease) (text string) {
	slices.SortFunc(granted, func(a, b *history.FastLease) int { return cmp.Compare(a.Return, b.Return) })
	asked := slices.Clone(granted)
	slices.SortFunc(asked, func(a, b *history.FastLease) int { return cmp.Compare(a.Call, b.Call) })
	var highest *history.FastLease // of the leases whose grant had returned
	low, next := 0, 0
	for _, d := range asked {
		for ; next < len(granted) && granted[next].Return < d.Call; next++ {
			if highest == nil || granted[next].Fence > highest.Fence {
				highest = granted[next]
			}
		}
		if d.Fence > 0 && (highest == nil || d.Fence > highest.Fence) {
			continue
		}
		if low++; low == 1 {
			text = "the first is that of " + describeFastLease(d)
			if highest != nil {
				text += ", after " + describeFastLease(highest)
			}
		}
	}
	if low == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d numbers of %s are not above all those of earlier holders; %s", low, len(asked), asked[0].Key, text)
}

func describeFastLease(d *history.FastLease) string {
	return fmt.Sprintf("client %d in process %d, called at %d, fence %d", d.Client, d.Process, d.Call, d.Fence)
}

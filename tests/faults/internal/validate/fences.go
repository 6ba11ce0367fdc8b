package validate

import (
	"cmp"
	"fmt"
	"slices"

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

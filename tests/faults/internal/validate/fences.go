package validate

import (
	"cmp"
	"fmt"
	"slices"
)

// lowLeaseFences finds the leases without a fence, and those whose fence is not greater
// than that of each lease of the same key whose grant had returned before they
// were asked for. Attempts may have none, and all leases of a key may have none, if
// other keys have them. Where no client asked for a fence, as none can of a quorum,
// there is nothing to judge.
//
// A server hands fences out in blocks, which a process uses up for the leases
// that it passes on, so that ghosts go on with the fences of a block that was
// reserved before the loss. They are not compared with anybody but those who had
// the same block. Whoever asks after the loss must have a greater one all the
// same, than the ghosts too: a block begins at the server's time, in
// microseconds, if the counter is not beyond that.
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
		var highest *lease           // of those whose grant had returned
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
			if before != nil && l.grant.Fence <= before.grant.Fence && before.grant.Fence != 0 {
				found = append(found, Violation{Check: checkFences, Text: fmt.Sprintf(
					"%s was granted after %s", callName(l.grant), callName(before.grant))})
			}
		}
	}
	return found
}

// higherFence returns the lease with the higher fence.
func higherFence(a, b *lease) *lease {
	if a == nil || b.grant.Fence > a.grant.Fence {
		return b
	}
	return a
}

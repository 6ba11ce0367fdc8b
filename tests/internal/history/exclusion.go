package history

import (
	"fmt"
	"slices"
	"time"
)

// An Overlap is two holds of one key that callers could trust at the same time.
type Overlap struct{ First, Second *Hold }

// String describes the overlap.
func (o Overlap) String() string {
	return fmt.Sprintf("%s: %v was granted %v before the end of %v (lost: %t and %t)",
		o.First.Key, o.Second, round(o.First.Ended-o.Second.Granted), o.First, o.Second.Lost, o.First.Lost)
}

// Overlaps returns each pair of holds that violates mutual exclusion: two shared holds do not.
func (h Holds) Overlaps() (found []Overlap) {
	for _, holds := range h.Granted() {
		var open Holds // those that have not ended at the grant
		for _, one := range holds {
			open = slices.DeleteFunc(open, func(first *Hold) bool { return first.Ended <= one.Granted })
			for _, first := range open {
				if first.excludes(one) {
					found = append(found, Overlap{first, one})
				}
			}
			open = append(open, one)
		}
	}
	return found
}

// Limits returns the shared holds that were granted beside more others than the highest of
// their limits allows. A caller may be informed of its grant after a later grant of a higher
// limit, so a lower limit does not count.
func (h Holds) Limits() (violations []string) {
	for _, holds := range h.Granted() {
		var open Holds
		for _, one := range holds {
			if one.Limit == 0 {
				continue // see Overlaps
			}
			open = slices.DeleteFunc(open, func(first *Hold) bool { return first.Ended <= one.Granted })
			open = append(open, one)
			highest := 0
			for _, other := range open {
				if other.Limit == Unlimited {
					highest = len(open)
				}
				highest = max(highest, other.Limit)
			}
			if highest > 0 && len(open) > highest {
				violations = append(violations, fmt.Sprintf("%s: %v is one of %d holds at a time, where %d are allowed", one.Key, one, len(open), highest))
			}
		}
	}
	return violations
}

// Exclusion returns the overlaps as violations.
func (h Holds) Exclusion() (violations []string) {
	for _, overlap := range h.Overlaps() {
		violations = append(violations, overlap.String())
	}
	return violations
}

// Encounters returns the holds that were granted while another holder was in the critical section,
// whether they trusted the lock or not, unless one of the two was informed that its lock was lost, or
// killed. So a holder that outlives its lease without being informed is found.
func (h Holds) Encounters() (violations []string) {
	for _, holds := range h.byGrant((*Hold).IsServed) {
		var inside Holds
		for _, one := range holds {
			inside = slices.DeleteFunc(inside, func(first *Hold) bool { return first.Left <= one.Granted })
			for _, first := range inside {
				if first.excludes(one) && !first.Lost && !one.Lost && !first.Killed {
					violations = append(violations, fmt.Sprintf("%s: %v entered the section of %v", one.Key, one, first))
				}
			}
			inside = append(inside, one)
		}
	}
	return violations
}

// Fences returns the fences of each key that do not rise from grant to grant. Shared holds
// that follow each other may have the same fence.
func (h Holds) Fences() (violations []string) {
	for _, holds := range h.Granted() {
		var highest *Hold
		for _, one := range holds {
			switch {
			case one.Unfenced:
			case highest != nil && !one.mayFollow(highest):
				violations = append(violations, fall(one, highest))
			default:
				highest = one
			}
		}
	}
	return violations
}

// LeaseFences returns the fences of each key that do not rise within a lease, or from
// each lease to the leases that began later. It is for histories in which Redis loses
// data: callers may trust the lease before the loss, and pass it on, for a while after
// the next lease began.
func (h Holds) LeaseFences() (violations []string) {
	for _, holds := range h.Granted() {
		last := map[string]*Hold{} // by episode
		var highest *Hold
		for _, one := range holds {
			if one.Unfenced {
				continue
			}
			before, begun := last[one.Episode]
			if !begun {
				before = highest
			}
			if before != nil && !one.mayFollow(before) {
				violations = append(violations, fall(one, before))
			}
			last[one.Episode] = one
			if highest == nil || one.Fence > highest.Fence {
				highest = one
			}
		}
	}
	return violations
}

// mayFollow reports whether the fence of a hold may follow that of an earlier one.
func (h *Hold) mayFollow(before *Hold) bool {
	return h.Fence > before.Fence || h.Fence == before.Fence && !h.excludes(before)
}

func fall(one, before *Hold) string {
	return fmt.Sprintf("%s: %v has the fence %d after the fence %d of %v", one.Key, one, one.Fence, before.Fence, before)
}

// Service returns the callers that asked for a lock and were neither served nor killed.
func (h Holds) Service(now time.Duration) (violations []string) {
	for _, one := range h {
		if one.Asked != 0 && !one.IsServed() && !one.Killed {
			violations = append(violations, fmt.Sprintf("%s: %s has waited for %v", one.Key, one.Holder, round(now-one.Asked)))
		}
	}
	return violations
}

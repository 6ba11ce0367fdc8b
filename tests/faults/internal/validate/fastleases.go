package validate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

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

package resharding

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A hold is one turn of one caller, from its call to the end of what it believed
// in. Times are those since the history began; 0 is never.
type hold struct {
	caller  string
	asked   time.Duration
	granted time.Duration
	ended   time.Duration
	fence   int64
}

// String names the hold.
func (h *hold) String() string {
	return fmt.Sprintf("%s, %v to %v", h.caller, h.granted.Round(time.Millisecond), h.ended.Round(time.Millisecond))
}

// A history is all holds of one key, and the calls that wait without end. It is
// safe for concurrent use until it is checked.
type history struct {
	mu    sync.Mutex
	holds []*hold
}

func (h *history) add(one *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds = append(h.holds, one)
}

// grants returns the holds that were believed in, in the order in which they
// were granted. One that was over before it began was not.
func (h *history) grants() []*hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []*hold
	for _, one := range h.holds {
		if one.granted != 0 && one.granted < one.ended {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b *hold) int { return cmp.Compare(a.granted, b.granted) })
	return found
}

// overlaps finds the holds that were granted while another was believed in.
func (h *history) overlaps() (found []string) {
	var last *hold // the one that ends last so far
	for _, one := range h.grants() {
		if last != nil && one.granted < last.ended {
			found = append(found, fmt.Sprintf("%v was granted before the end of %v", one, last))
		}
		if last == nil || one.ended > last.ended {
			last = one
		}
	}
	return found
}

// falls finds the fences that do not rise from grant to grant.
func (h *history) falls() (found []string) {
	var highest *hold
	for _, one := range h.grants() {
		if highest != nil && one.fence <= highest.fence {
			found = append(found, fmt.Sprintf("%v has the fence %d after %d of %v", one, one.fence, highest.fence, highest))
			continue
		}
		highest = one
	}
	return found
}

// unserved finds who asked, may wait without end, and was not served.
func (h *history) unserved() (found []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.holds {
		if one.granted == 0 {
			found = append(found, fmt.Sprintf("%s waits since %v", one.caller, one.asked))
		}
	}
	return found
}

// longestGap returns the longest time within the span in which nobody was granted
// the key.
func (h *history) longestGap(from, to time.Duration) (longest time.Duration) {
	last := from
	for _, one := range h.grants() {
		if one.granted > from && one.granted <= to {
			longest, last = max(longest, one.granted-last), one.granted
		}
	}
	return max(longest, to-last)
}

package failover

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// A hold is a turn on a key, as its holder has seen it.
type hold struct {
	key     string
	by      string
	granted time.Time // Lock has returned
	ended   time.Time // the hold could not be believed in any more
	fence   int64
	told    bool // its holder was told that it was lost
}

// A history is all holds of a scene. It is safe for concurrent use.
type history struct {
	mu    sync.Mutex
	holds []hold
}

func (h *history) add(one hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds = append(h.holds, one)
}

// sorted returns the holds of each key in the order of their grants.
func (h *history) sorted() map[string][]hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys := map[string][]hold{}
	for _, one := range h.holds {
		keys[one.key] = append(keys[one.key], one)
	}
	for _, holds := range keys {
		slices.SortFunc(holds, func(a, b hold) int { return a.granted.Compare(b.granted) })
	}
	return keys
}

// overlaps returns how many holds were granted while another was believed in, and
// those of them in which nobody was told, or that nothing was lost for.
func (h *history) overlaps(may bool) (n int, faults []string) {
	for key, holds := range h.sorted() {
		for i, one := range holds {
			for _, before := range holds[:i] {
				if !one.granted.Before(before.ended) {
					continue
				}
				n++
				if !may || !before.told && !one.told {
					faults = append(faults, fmt.Sprintf("%s: %s was granted %v before the end of %s, told %v and %v",
						key, one.by, before.ended.Sub(one.granted), before.by, before.told, one.told))
				}
			}
		}
	}
	return n, faults
}

// falls returns the fencing numbers that do not rise from grant to grant.
func (h *history) falls() (faults []string) {
	for key, holds := range h.sorted() {
		var highest hold
		for _, one := range holds {
			if one.fence != 0 && one.fence <= highest.fence {
				faults = append(faults, fmt.Sprintf("%s: %s has the number %d after %d of %s",
					key, one.by, one.fence, highest.fence, highest.by))
			}
			if one.fence > highest.fence {
				highest = one
			}
		}
	}
	return faults
}

package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Hold is one turn of one caller on one key. Its times count from a start that all
// holds of a history share; 0 is never.
type Hold struct {
	Key     string // may be empty if all holds are of one key
	Holder  string // names the caller in violations
	Process int    // of the caller
	Lease   int64  // tells the leases of a process apart, for LeaseFences
	// Limit is how many shared holds of the key there may be beside each other, this one
	// included, or Unlimited; 0 for an exclusive hold.
	Limit int

	Asked   time.Duration // the caller asked for the lock
	Granted time.Duration // the caller got the lock
	Ended   time.Duration // the caller could no longer trust the lock

	Fence    int64
	Unfenced bool // the hold has no fence, and fences are not checked

	Lost   bool // the caller was informed that the lock was lost
	Killed bool // the process of the caller was killed before the turn ended
}

// Unlimited is the Limit of a shared hold without a limit.
const Unlimited = -1

// IsServed reports whether the lock was granted.
func (h *Hold) IsServed() bool { return h.Granted != 0 }

// IsTrusted reports whether the caller could trust the lock at any time. It could not if
// the hold had ended before the caller got to run.
func (h *Hold) IsTrusted() bool { return h.IsServed() && h.Granted < h.Ended }

// excludes reports whether there may be no such two holds at the same time.
func (h *Hold) excludes(other *Hold) bool { return h.Limit == 0 || other.Limit == 0 }

// String names the hold.
func (h *Hold) String() string {
	return fmt.Sprintf("%s (%v to %v)", h.Holder, round(h.Granted), round(h.Ended))
}

// round shortens a time for a message.
func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// Holds is a history, in any order.
type Holds []*Hold

// Granted returns the holds of each key that their callers could trust, in the order of
// their grants.
func (h Holds) Granted() map[string]Holds {
	keys := map[string]Holds{}
	for _, one := range h {
		if one.IsTrusted() {
			keys[one.Key] = append(keys[one.Key], one)
		}
	}
	for _, holds := range keys {
		slices.SortFunc(holds, func(a, b *Hold) int { return cmp.Compare(a.Granted, b.Granted) })
	}
	return keys
}

package waiting

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// A hold is one turn of one goroutine, from its call of Lock to the end of what
// it believed in. Times are those of CLOCK_MONOTONIC, in ns; 0 is never.
type hold struct {
	process, goroutine, turn int

	asked   int64 // Lock was called
	granted int64 // Lock returned
	ended   int64 // the hold could not be believed in any more
	fence   int64
	episode int64 // which lease of its process it ran under
	lost    bool  // its context said so, or its release
	killed  bool  // its process was killed before the turn ended
	met     *hold // who was still inside when it went in
	stood   int64 // when its process went on, if that stood still while it waited
}

// String names the hold.
func (h *hold) String() string {
	return fmt.Sprintf("process %d, goroutine %d, turn %d", h.process, h.goroutine, h.turn)
}

// served reports whether the hold came to be.
func (h *hold) served() bool { return h.granted != 0 }

// void reports whether the hold was over before it began, so that nobody
// believed in it: its process stood still meanwhile.
func (h *hold) void() bool { return h.ended <= h.granted }

// endOfWait returns until when it stood in line; forever if it still does.
func (h *hold) endOfWait() int64 {
	switch {
	case h.served():
		return h.granted
	case h.killed:
		return h.ended
	default:
		return math.MaxInt64
	}
}

// A history is all holds of one key.
type history []*hold

// grants returns the holds that were believed in, in the order in which they
// were granted.
func (h history) grants() history {
	var found history
	for _, one := range h {
		if one.served() && !one.void() {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b *hold) int { return cmp.Compare(a.granted, b.granted) })
	return found
}

// handOffs returns how often the key went from one process to another.
func (h history) handOffs() (n int) {
	grants := h.grants()
	for i, one := range grants {
		if i > 0 && grants[i-1].process != one.process {
			n++
		}
	}
	return n
}

// longestWait returns the longest time that a hold which was served waited.
func (h history) longestWait() (longest time.Duration) {
	for _, one := range h {
		if one.served() {
			longest = max(longest, time.Duration(one.granted-one.asked))
		}
	}
	return longest
}

// lost returns how many holders were told that their lease was lost.
func (h history) lost() (n int) {
	for _, one := range h {
		if one.lost {
			n++
		}
	}
	return n
}

// theKey is the one that all want.
const theKey = "account:42"

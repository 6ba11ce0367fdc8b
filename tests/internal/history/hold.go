package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// A Hold is one turn of one caller on one key, from its call until it leaves the critical section.
type Hold struct {
	Key     string
	Holder  string // names the caller in violations
	Process int
	Client  int
	Episode string // of the lease; see Op
	Limit   int    // see Op

	Asked   time.Duration // the caller asked for the lock
	Granted time.Duration // the caller got the lock
	Ended   time.Duration // the caller could no longer trust the lock
	Left    time.Duration // the caller left the critical section, trusting the lock or not

	Fence    int64
	Unfenced bool

	Lost    bool          // the caller was informed that the lock was lost
	Killed  bool          // the process of the caller was killed before the turn ended
	Resumed time.Duration // when the process continued, if it was paused while the caller waited
}

// IsServed reports whether the lock was granted.
func (h *Hold) IsServed() bool { return h.Granted != 0 }

// IsTrusted reports whether the caller could trust the lock at any time. It could not if the hold
// had ended before the caller got to run.
func (h *Hold) IsTrusted() bool { return h.IsServed() && h.Granted < h.Ended }

// excludes reports whether there may be no such two holds at the same time.
func (h *Hold) excludes(other *Hold) bool { return h.Limit == 0 || other.Limit == 0 }

// String names the hold.
func (h *Hold) String() string {
	return fmt.Sprintf("%s (%v to %v)", h.Holder, round(h.Granted), round(h.Ended))
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// Holds are holds in any order.
type Holds []*Hold

// Holds returns the holds of a history: the calls of Lock that were granted or have not returned.
// A hold that no Release ends lasts until its process was killed, or for ever.
func (h History) Holds() (holds Holds) {
	ends := map[string]Op{}
	for _, op := range h.Ops {
		if op.Kind == Release {
			ends[op.Lease] = op
		}
	}
	for _, op := range h.Ops {
		if op.Kind != Lock || op.Return != 0 && op.Outcome != Granted {
			continue
		}
		one := &Hold{
			Key: op.Key, Holder: op.Name, Process: op.Process, Client: op.Client, Episode: op.Episode, Limit: op.Limit,
			Asked: time.Duration(op.Call), Granted: time.Duration(op.Return), Ended: math.MaxInt64, Left: math.MaxInt64,
			Fence: op.Fence, Unfenced: op.Unfenced,
		}
		if one.Holder == "" {
			one.Holder = fmt.Sprintf("process %d, caller %d", op.Process, op.Client)
		}
		end, isEnded := ends[op.Lease]
		if isEnded && one.IsServed() {
			one.Ended, one.Left, one.Lost = time.Duration(end.ReliedUntil), time.Duration(end.Call), end.Outcome == Lost
		}
		for _, failure := range h.ProcessFailures {
			if failure.Process == op.Process {
				one.meet(failure)
			}
		}
		holds = append(holds, one)
	}
	return holds
}

func (h *Hold) meet(failure ProcessFailure) {
	from, to := time.Duration(failure.From), time.Duration(failure.To)
	switch {
	case to == 0 && h.Left == math.MaxInt64:
		h.Killed, h.Ended = true, max(from, h.Granted+1)
		h.Left = h.Ended
	case to != 0 && h.Asked <= to && h.waitEnd() >= from:
		h.Resumed = to
	}
}

// waitEnd returns when the caller left the queue, or the largest time if it still waits.
func (h *Hold) waitEnd() time.Duration {
	switch {
	case h.IsServed():
		return h.Granted
	case h.Killed:
		return h.Ended
	default:
		return math.MaxInt64
	}
}

// Granted returns the holds of each key that their callers could trust, in the order of their
// grants.
func (h Holds) Granted() map[string]Holds { return h.byGrant((*Hold).IsTrusted) }

// byGrant returns some holds of each key, in the order of their grants.
func (h Holds) byGrant(such func(*Hold) bool) map[string]Holds {
	keys := map[string]Holds{}
	for _, one := range h {
		if such(one) {
			keys[one.Key] = append(keys[one.Key], one)
		}
	}
	for _, holds := range keys {
		slices.SortFunc(holds, func(a, b *Hold) int { return cmp.Compare(a.Granted, b.Granted) })
	}
	return keys
}

// HandOffs returns how often a key went from one process to another.
func (h Holds) HandOffs() (n int) {
	for _, granted := range h.Granted() {
		for i, one := range granted {
			if i > 0 && granted[i-1].Process != one.Process {
				n++
			}
		}
	}
	return n
}

// Lost returns how many holders were informed that their lock was lost.
func (h Holds) Lost() (n int) {
	for _, one := range h {
		if one.Lost {
			n++
		}
	}
	return n
}

// LongestGap returns the longest time in a span in which no lock was granted.
func (h Holds) LongestGap(from, to int64) (longest time.Duration) {
	last := time.Duration(from)
	for _, granted := range h.Granted() {
		for _, one := range granted {
			if one.Granted > time.Duration(from) && one.Granted <= time.Duration(to) {
				longest, last = max(longest, one.Granted-last), one.Granted
			}
		}
	}
	return max(longest, time.Duration(to)-last)
}

// Waits returns the mean and the longest wait of the callers that were served.
func (h Holds) Waits() (mean, longest time.Duration) {
	served := 0
	for _, one := range h {
		if one.IsServed() {
			mean, longest = mean+one.Granted-one.Asked, max(longest, one.Granted-one.Asked)
			served++
		}
	}
	return mean / time.Duration(max(1, served)), longest
}

// ByLimit returns the holds of each kind of lease.
func (h Holds) ByLimit() map[int]Holds {
	kinds := map[int]Holds{}
	for _, one := range h {
		kinds[one.Limit] = append(kinds[one.Limit], one)
	}
	return kinds
}

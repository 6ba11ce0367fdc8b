package waiting

import (
	"fmt"
	"time"
)

// overlaps finds the holds that were granted while another was believed in.
func (h history) overlaps() (found []string) {
	var last *hold // the one that ends last so far
	for _, one := range h.grants() {
		if last != nil && one.granted < last.ended {
			found = append(found, fmt.Sprintf("%v began %v before the end of %v",
				one, time.Duration(last.ended-one.granted), last))
		}
		if last == nil || one.ended > last.ended {
			last = one
		}
	}
	return found
}

// meetings finds the holds that went in while another was inside. It is sharper
// than overlaps, since it needs no clock. Who outlived its lease, and was told
// so or killed, may be met.
func (h history) meetings() (found []string) {
	for _, one := range h {
		if met := one.met; met != nil && !one.lost && !met.lost && !met.killed {
			found = append(found, fmt.Sprintf("%v met %v", one, met))
		}
	}
	return found
}

// unserved finds who asked and was neither served nor killed.
func (h history) unserved(now int64) (found []string) {
	for _, one := range h {
		if one.asked != 0 && !one.served() && !one.killed {
			found = append(found, fmt.Sprintf("%v waits since %v", one, time.Duration(now-one.asked)))
		}
	}
	return found
}

// falls finds the fences that do not rise from grant to grant.
func (h history) falls() (found []string) {
	var highest *hold
	for _, one := range h.grants() {
		if highest != nil && one.fence <= highest.fence {
			found = append(found, fmt.Sprintf("%v has the fence %d after %d of %v",
				one, one.fence, highest.fence, highest))
			continue
		}
		highest = one
	}
	return found
}

// leaseFalls finds the fences that do not rise within a lease, and from each
// lease to those that began later. It is what still holds where data is lost:
// then the lease before may be believed in, and passed on, for a while after
// the next one began.
func (h history) leaseFalls() (found []string) {
	type lease struct{ process, episode int64 }
	last := map[lease]*hold{}
	var highest *hold
	for _, one := range h.grants() {
		id := lease{int64(one.process), one.episode}
		before, begun := last[id]
		if !begun {
			before = highest
		}
		if before != nil && one.fence <= before.fence {
			found = append(found, fmt.Sprintf("%v has the fence %d after %d of %v", one, one.fence, before.fence, before))
		}
		last[id] = one
		if highest == nil || one.fence > highest.fence {
			highest = one
		}
	}
	return found
}

// The turn of a process: so many passes, and so long, while another waits. The
// grant with which the turn begins is not a pass.
const (
	turnGrants = 64 + 1
	turnTime   = 50 * time.Millisecond
)

// A fairness says how turns are looked at.
type fairness struct {
	// notice is for how long another process has to have waited: it takes time
	// until its question is with Redis, and the holder has heard of it.
	notice time.Duration
	// start is for how much longer before the first grant of its process, which
	// has to connect.
	start time.Duration
	// stall is for how long a process may be kept from running by the machine.
	stall time.Duration
	// late is in how many of a hundred turns it may be kept for longer.
	late int
	// leases is true where a turn is one lease, instead of all grants in a row:
	// a process that died had a turn in between, which nobody saw.
	leases bool
}

// hogs finds the processes that took more than a turn while another waited.
func (h history) hogs(f fairness) (found []string) {
	var late []string
	grants, waits := h.grants(), h.waits(f.start)
	var first *hold
	var longest int64 // section of the turn
	n := 0
	for i, one := range grants {
		waited := time.Duration(one.granted - waits.othersSince(one))
		if first != nil && (one.process != first.process || f.leases && one.episode != first.episode) {
			first = nil
		}
		switch {
		case waited <= f.notice:
			first = nil
			continue
		case first == nil:
			first, n, longest = one, 0, 0
		}
		n++
		if i > 0 && first != one {
			longest = max(longest, grants[i-1].ended-grants[i-1].granted)
		}
		switch took := time.Duration(one.granted - first.granted); {
		case n == turnGrants+1:
			found = append(found, fmt.Sprintf("%v is number %d in a row, while another process waits since %v", one, n, waited))
		case took > turnTime+time.Duration(longest)+f.stall && n <= turnGrants:
			late = append(late, fmt.Sprintf("%v is granted after %v in a row, while another process waits since %v", one, took, waited))
			first = nil
		}
	}
	return append(found, unlessFew(late, f.few(h))...)
}

// few is how many findings may be the fault of the machine: in so many of the turns.
func (f fairness) few(h history) int { return f.late * (h.handOffs() + 1) / 100 }

// unlessFew returns what was found if it is more than may be the fault of the machine.
func unlessFew(found []string, few int) []string {
	if len(found) <= few {
		return nil
	}
	return found
}

// disorder finds what jumped does, unless few have jumped. It counts them against the
// turns: a line that loses its order at hand-offs jumps there, and not at each grant.
func (h history) disorder(margin time.Duration, f fairness) []string {
	return unlessFew(h.jumped(margin), f.few(h))
}

// jumped finds, in each process, the holds that were granted before one that
// had asked earlier, by more than it may take to get from the call into the
// line: 0 for histories in which each asked only when the one before was known
// to wait.
func (h history) jumped(margin time.Duration) (found []string) {
	last := map[int]*hold{}
	for _, one := range h.grants() {
		if before := last[one.process]; before != nil && before.asked > one.asked+int64(margin) {
			found = append(found, fmt.Sprintf("%v asked %v before %v and was granted after it",
				one, time.Duration(before.asked-one.asked), before))
		}
		if before := last[one.process]; before == nil || one.asked > before.asked {
			last[one.process] = one
		}
	}
	return found
}

// mostHandOffs returns how often the key may go from one process to another, with room
// for a busy machine: turns end by their grants or, where grants are slow, by their
// time. There are half as many grants, or half of the time, in nearly each.
func (h history) mostHandOffs() int {
	grants := h.grants()
	if len(grants) == 0 {
		return 0
	}
	took := time.Duration(grants[len(grants)-1].granted - grants[0].granted)
	return len(grants)/(turnGrants/2) + int(took/(turnTime/2))
}

// patient is the fairness that is asked of real processes on a busy machine.
// Somebody who has to be served after three turns of 50 ms waits for longer.
var patient = fairness{
	notice: 100 * time.Millisecond,
	start:  400 * time.Millisecond,
	stall:  100 * time.Millisecond,
	late:   5,
}

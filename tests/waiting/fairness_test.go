package waiting

import (
	"fmt"
	"time"
)

// A process may pass the lock on within itself this often, and for this long, while
// another process waits. The grant with which its turn of the line begins counts, too.
const (
	maxGrants = 64 + 1
	maxTime   = 50 * time.Millisecond
)

// A fairness is how strictly monopolies are judged.
type fairness struct {
	// minWait is how long another process must have waited: it takes time until its
	// request is in Redis, and the holder is notified.
	minWait time.Duration
	// startup is added to minWait before the first grant of a process, which has to
	// connect.
	startup time.Duration
	// stall is how long the machine may keep a process from running.
	stall time.Duration
	// latePercent is in how many of a hundred turns it may keep a process for longer.
	latePercent int
	// byLease makes each lease a turn, instead of all grants in a row: between two leases
	// of a process there was a turn of a process that died, of which there is no record.
	byLease bool
}

// busyMachine is the fairness of real processes on a busy machine. A process that is
// served after three turns of 50 ms waits longer than minWait.
var busyMachine = fairness{
	minWait:     100 * time.Millisecond,
	startup:     400 * time.Millisecond,
	stall:       100 * time.Millisecond,
	latePercent: 5,
}

// monopolies returns the processes that took more than a turn while another one waited.
func (ts turns) monopolies(f fairness) (violations []string) {
	var late []string
	granted, waits := ts.granted(), ts.waits(f.startup)
	var first *turn
	var longest time.Duration // section of the turn
	n := 0
	for i, one := range granted {
		waited := one.Granted - waits.othersSince(one)
		if first != nil && (one.Process != first.Process || f.byLease && one.Lease != first.Lease) {
			first = nil
		}
		switch {
		case waited <= f.minWait:
			first = nil
			continue
		case first == nil:
			first, n, longest = one, 0, 0
		}
		n++
		if i > 0 && first != one {
			longest = max(longest, granted[i-1].Ended-granted[i-1].Granted)
		}
		switch took := one.Granted - first.Granted; {
		case n == maxGrants+1:
			violations = append(violations, fmt.Sprintf("%v is number %d in a row, while another process has waited for %v", one, n, waited))
		case took > maxTime+longest+f.stall && n <= maxGrants:
			late = append(late, fmt.Sprintf("%v is granted after %v in a row, while another process has waited for %v", one, took, waited))
			first = nil
		}
	}
	return append(violations, unlessFew(late, f.tolerated(ts))...)
}

// tolerated returns how many violations a busy machine may cause.
func (f fairness) tolerated(ts turns) int { return f.latePercent * (ts.handOffs() + 1) / 100 }

// unlessFew returns the violations if a busy machine cannot have caused all of them.
func unlessFew(violations []string, tolerated int) []string {
	if len(violations) <= tolerated {
		return nil
	}
	return violations
}

// longestFairWait returns how long a waiter may wait on a busy machine while processes take
// turns of exclusive and of shared leases: each process may have a turn of each kind before.
func (f fairness) longestFairWait(processes int) time.Duration {
	return time.Duration(2*processes) * (maxTime + f.stall)
}

// longWaits returns the turns that waited for longer than that, unless they are few. A turn
// that was not served is found by history.Service.
func (ts turns) longWaits(f fairness, processes int) []string {
	var late []string
	for _, one := range ts {
		if waited := one.Granted - one.Asked; one.IsServed() && waited > f.longestFairWait(processes) {
			late = append(late, fmt.Sprintf("%v has waited for %v, where %v are fair", one, waited, f.longestFairWait(processes)))
		}
	}
	return unlessFew(late, f.latePercent*len(ts)/100)
}

// disorder returns the violations of order, unless they are few. It compares them with
// the turns: a queue that loses its order at hand-offs violates it there, and not at each
// grant.
func (ts turns) disorder(margin time.Duration, f fairness) []string {
	return unlessFew(ts.overtakings(margin), f.tolerated(ts))
}

// overtakings returns, for each process, the turns that were granted before a turn that
// asked earlier, by more than the margin. The margin is how long a call may take from its
// start to the queue. It is 0 if each call began after the one before was in the queue.
func (ts turns) overtakings(margin time.Duration) (violations []string) {
	last := map[int]*turn{}
	for _, one := range ts.granted() {
		if before := last[one.Process]; before != nil && before.Asked > one.Asked+margin {
			violations = append(violations, fmt.Sprintf("%v asked %v before %v and was granted after it",
				one, before.Asked-one.Asked, before))
		}
		if before := last[one.Process]; before == nil || one.Asked > before.Asked {
			last[one.Process] = one
		}
	}
	return violations
}

// maxHandOffs returns how often the key may go from one process to another, with room for
// a busy machine. Turns end by their grants or, if grants are slow, by their time. Nearly
// each turn has half as many grants, or half of the time.
func (ts turns) maxHandOffs() int {
	granted := ts.granted()
	if len(granted) == 0 {
		return 0
	}
	took := granted[len(granted)-1].Granted - granted[0].Granted
	return len(granted)/(maxGrants/2) + int(took/(maxTime/2))
}

package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A process may pass the lock on within itself this often, and for this long, while another
// process waits. The grant with which its turn of the line begins counts, too.
const (
	MaxGrants = 64 + 1
	MaxTime   = 50 * time.Millisecond
)

// A Fairness is how strictly the turns of processes are judged.
type Fairness struct {
	// MinWait is how long another process must have waited: it takes time until its request is in
	// Redis, and the holder is notified.
	MinWait time.Duration
	// Startup is added to MinWait before the first grant of a process, which has to connect.
	Startup time.Duration
	// Stall is how long the machine may keep a process from running.
	Stall time.Duration
	// LatePercent is in how many of a hundred turns the machine may keep a process for longer.
	LatePercent int
	// ByLease makes each lease a turn, instead of all grants in a row: between two leases of a
	// process there was a turn of a process that died, of which there is no record.
	ByLease bool
}

// BusyMachine is the fairness of real processes on a busy machine. A process that is served after
// three turns of 50 ms waits longer than MinWait.
func BusyMachine() Fairness {
	return Fairness{MinWait: 100 * time.Millisecond, Startup: 400 * time.Millisecond, Stall: 100 * time.Millisecond, LatePercent: 5}
}

// Monopolies returns the processes that took more than a turn while another one waited.
func (f Fairness) Monopolies(h Holds) (violations []string) {
	for key, granted := range h.Granted() {
		violations = append(violations, f.monopolies(granted, h.waits(key, f.Startup))...)
	}
	return violations
}

func (f Fairness) monopolies(granted Holds, w waits) (violations []string) {
	var late []string
	var first *Hold
	var longest time.Duration // section of the turn
	n := 0
	for i, one := range granted {
		waited := one.Granted - w.othersSince(one)
		if first != nil && (one.Process != first.Process || f.ByLease && one.Episode != first.Episode) {
			first = nil
		}
		switch {
		case waited <= f.MinWait:
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
		case n == MaxGrants+1:
			violations = append(violations, fmt.Sprintf("%v is number %d in a row, while another process has waited for %v", one, n, waited))
		case took > MaxTime+longest+f.Stall && n <= MaxGrants:
			late = append(late, fmt.Sprintf("%v is granted after %v in a row, while another process has waited for %v", one, took, waited))
			first = nil
		}
	}
	return append(violations, unlessFew(late, f.tolerated(granted))...)
}

// tolerated returns how many violations a busy machine may cause.
func (f Fairness) tolerated(h Holds) int { return f.LatePercent * (h.HandOffs() + 1) / 100 }

// unlessFew returns the violations if a busy machine cannot have caused all of them.
func unlessFew(violations []string, tolerated int) []string {
	if len(violations) <= tolerated {
		return nil
	}
	return violations
}

// starved is how many fair waits no caller may wait for, however few do.
const starved = 4

// LongWaits returns the holds of this many processes that waited for longer than is fair, unless
// they are few, and those that starved. While processes take turns of exclusive and of shared
// leases, each process may have a turn of each kind before.
func (f Fairness) LongWaits(h Holds, processes int) (violations []string) {
	fair := time.Duration(2*processes) * (MaxTime + f.Stall)
	var late []string
	for _, one := range h {
		waited := one.Granted - one.Asked
		if !one.IsServed() || waited <= fair {
			continue
		}
		text := fmt.Sprintf("%v has waited for %v, where %v are fair", one, waited, fair)
		if waited > starved*fair {
			violations = append(violations, text)
			continue
		}
		late = append(late, text)
	}
	return append(violations, unlessFew(late, f.LatePercent*len(h)/100)...)
}

// Disorder returns the violations of order, unless they are few. It compares them with the turns: a
// queue that loses its order at hand-offs violates it there, and not at each grant.
func (f Fairness) Disorder(h Holds, margin time.Duration) []string {
	return unlessFew(h.Overtakings(margin), f.tolerated(h))
}

// Overtakings returns the holds of each process that were granted before one that was asked for
// earlier, by more than the margin. The margin is how long a call may take from its start to the
// queue. It is 0 if each call began after the one before was in the queue.
func (h Holds) Overtakings(margin time.Duration) (violations []string) {
	for _, granted := range h.Granted() {
		last := map[int]*Hold{}
		for _, one := range granted {
			before := last[one.Process]
			if before != nil && before.Asked > one.Asked+margin {
				violations = append(violations, fmt.Sprintf("%v asked %v before %v and was granted after it", one, before.Asked-one.Asked, before))
			}
			if before == nil || one.Asked > before.Asked {
				last[one.Process] = one
			}
		}
	}
	return violations
}

// MaxHandOffs returns how often the key may go from one process to another, with room for a busy
// machine. Turns end by their grants or, if grants are slow, by their time. Nearly each turn has
// half as many grants, or half of the time.
func (h Holds) MaxHandOffs() (n int) {
	for _, granted := range h.Granted() {
		took := granted[len(granted)-1].Granted - granted[0].Granted
		n += len(granted)/(MaxGrants/2) + int(took/(MaxTime/2))
	}
	return n
}

// waits tells since when callers wait, at times that only rise.
type waits []*pending

// pending are the later holds of one caller, in their order.
type pending struct {
	process int
	holds   []wait
}

// A wait is a hold, and since when its wait counts.
type wait struct {
	*Hold
	since time.Duration
}

// waits returns the waits for a key. Waits before the first grant of their process count from
// startup later. So do waits of a process that was paused, from when it continued.
func (h Holds) waits(key string, startup time.Duration) (w waits) {
	first := map[int]time.Duration{}
	for _, one := range h.Granted()[key] {
		if _, found := first[one.Process]; !found {
			first[one.Process] = one.Granted
		}
	}
	type caller struct{ process, client int }
	all := map[caller]*pending{}
	for _, one := range h {
		if one.Key != key || one.Asked == 0 {
			continue
		}
		id := caller{one.Process, one.Client}
		if all[id] == nil {
			all[id] = &pending{process: one.Process}
			w = append(w, all[id])
		}
		since := max(one.Asked, one.Resumed)
		if begun, found := first[one.Process]; !found || one.Asked < begun || one.Resumed != 0 {
			since += startup
		}
		all[id].holds = append(all[id].holds, wait{one, since})
	}
	for _, p := range w {
		slices.SortFunc(p.holds, func(a, b wait) int { return cmp.Compare(a.Asked, b.Asked) })
	}
	return w
}

// othersSince returns since when another process waits at the time of a grant, or that time if none
// waits.
func (w waits) othersSince(grant *Hold) time.Duration {
	since := grant.Granted
	for _, p := range w {
		if p.process == grant.Process {
			continue
		}
		for len(p.holds) > 0 && p.holds[0].waitEnd() <= grant.Granted {
			p.holds = p.holds[1:]
		}
		if len(p.holds) > 0 {
			since = min(since, p.holds[0].since)
		}
	}
	return since
}

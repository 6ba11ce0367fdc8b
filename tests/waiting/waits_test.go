package waiting

import (
	"cmp"
	"slices"
	"time"
)

// waits tells since when goroutines wait, at times that only rise.
type waits []*pendingTurns

// pendingTurns are the later turns of one goroutine, in their order.
type pendingTurns struct {
	process int
	turns   []wait
}

// A wait is a turn, and since when its wait counts.
type wait struct {
	*turn
	since time.Duration
}

// waits returns the waits of the history. Waits before the first grant of their process
// count from startup later. So do waits of a process that was stopped, from its
// resumption.
func (ts turns) waits(startup time.Duration) waits {
	first := map[int]time.Duration{}
	for _, one := range ts.granted() {
		if _, found := first[one.Process]; !found {
			first[one.Process] = one.Granted
		}
	}
	type goroutine struct{ process, number int }
	all := map[goroutine]*pendingTurns{}
	for _, one := range ts {
		if one.Asked == 0 {
			continue
		}
		id := goroutine{one.Process, one.goroutine}
		if all[id] == nil {
			all[id] = &pendingTurns{process: one.Process}
		}
		since := max(one.Asked, one.resumed)
		if begun, found := first[one.Process]; !found || one.Asked < begun || one.resumed != 0 {
			since += startup
		}
		all[id].turns = append(all[id].turns, wait{one, since})
	}
	var w waits
	for _, p := range all {
		slices.SortFunc(p.turns, func(a, b wait) int { return cmp.Compare(a.Asked, b.Asked) })
		w = append(w, p)
	}
	return w
}

// othersSince returns since when another process waits at the time of a grant, or that
// time if none waits.
func (w waits) othersSince(grant *turn) time.Duration {
	since := grant.Granted
	for _, p := range w {
		if p.process == grant.Process {
			continue
		}
		for len(p.turns) > 0 && p.turns[0].waitEnd() <= grant.Granted {
			p.turns = p.turns[1:]
		}
		if len(p.turns) > 0 {
			since = min(since, p.turns[0].since)
		}
	}
	return since
}

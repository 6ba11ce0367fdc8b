package waiting

import (
	"cmp"
	"slices"
	"time"
)

// waits tells since when goroutines wait, at times that only rise.
type waits []*queue

// A queue is the turns of one goroutine that are still to come, in their order.
type queue struct {
	process int
	turns   []wait
}

// A wait is a turn and since when its wait counts.
type wait struct {
	*hold
	since int64
}

// waits returns the waits of the history. Those before the first grant of their
// process count from so much later, and so do those of a process that stood
// still, from when it went on.
func (h history) waits(start time.Duration) waits {
	begun := map[int]bool{}
	first := map[int]int64{}
	for _, one := range h.grants() {
		if !begun[one.process] {
			begun[one.process], first[one.process] = true, one.granted
		}
	}
	type goroutine struct{ process, number int }
	all := map[goroutine]*queue{}
	for _, one := range h {
		if one.asked == 0 {
			continue
		}
		id := goroutine{one.process, one.goroutine}
		if all[id] == nil {
			all[id] = &queue{process: one.process}
		}
		since := max(one.asked, one.stood)
		if !begun[one.process] || one.asked < first[one.process] || one.stood != 0 {
			since += start.Nanoseconds()
		}
		all[id].turns = append(all[id].turns, wait{one, since})
	}
	var w waits
	for _, q := range all {
		slices.SortFunc(q.turns, func(a, b wait) int { return cmp.Compare(a.asked, b.asked) })
		w = append(w, q)
	}
	return w
}

// othersSince returns since when somebody of another process waits at the time
// of a grant; that time itself if nobody does.
func (w waits) othersSince(grant *hold) int64 {
	since := grant.granted
	for _, q := range w {
		if q.process == grant.process {
			continue
		}
		for len(q.turns) > 0 && q.turns[0].endOfWait() <= grant.granted {
			q.turns = q.turns[1:]
		}
		if len(q.turns) > 0 {
			since = min(since, q.turns[0].since)
		}
	}
	return since
}

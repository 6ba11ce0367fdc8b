package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/reqlock/reqlock/tests/bench/internal/growth"
)

// grouped returns the runs by size, and the sizes in ascending order.
func grouped[R any](runs []R, sizeOf func(R) int) (sizes []int, groups map[int][]R) {
	groups = make(map[int][]R)
	for _, run := range runs {
		n := sizeOf(run)
		if groups[n] == nil {
			sizes = append(sizes, n)
		}
		groups[n] = append(groups[n], run)
	}
	slices.Sort(sizes)
	return sizes, groups
}

// minMeasured is the least number of keys or waiters whose memory is above the noise of the
// runtime.
const minMeasured = 100

// PrintKeys prints how the cost grows with the number of keys.
func (r *Results) PrintKeys(w io.Writer) {
	fmt.Fprintf(w, "%s: so many keys taken by 64 goroutines, held at the same time, and given back\n", growth.KeysSuite)
	t := newTable("keys", "client CPU/key", "one more key, while all are held", "memory/held key", "memory kept afterwards",
		"lost for as many others", "keys left in Redis")
	sizes, groups := grouped(r.Keys, func(k growth.KeysRun) int { return k.Keys })
	for _, n := range sizes {
		m := func(of func(growth.KeysRun) float64) float64 { return medianOf(groups[n], of) }
		held := missing
		if n >= minMeasured {
			held = size(m(func(k growth.KeysRun) float64 { return k.HeldBytes }))
		}
		t.row(thousands(float64(n)),
			duration(m(func(k growth.KeysRun) float64 { return k.ClientCPU })),
			duration(m(func(k growth.KeysRun) float64 { return k.OneMore })),
			held,
			size(m(func(k growth.KeysRun) float64 { return k.KeptBytes })),
			size(m(func(k growth.KeysRun) float64 { return k.LostBytes })),
			number(m(func(k growth.KeysRun) float64 { return float64(k.LeftInRedis) })))
	}
	t.print(w)
}

// PrintWaiters prints how the cost grows with the number of waiters.
func (r *Results) PrintWaiters(w io.Writer) {
	fmt.Fprintf(w, "%s: so many goroutines of one process wait for one key, and get it one after the other; the last tells Redis\n", growth.WaitersSuite)
	t := newTable("waiters", "memory/waiter", "time/hand-off", "allocs/hand-off", "commands/hand-off")
	sizes, groups := grouped(r.Waiters, func(run growth.WaitersRun) int { return run.Waiters })
	for _, n := range sizes {
		m := func(of func(growth.WaitersRun) float64) float64 { return medianOf(groups[n], of) }
		memory := missing
		if n >= minMeasured {
			memory = size(m(func(run growth.WaitersRun) float64 { return run.Bytes }))
		}
		t.row(thousands(float64(n)),
			memory,
			duration(m(func(run growth.WaitersRun) float64 { return run.Handoff })),
			number(m(func(run growth.WaitersRun) float64 { return run.Allocations })),
			number(m(func(run growth.WaitersRun) float64 { return run.Commands })))
	}
	t.print(w)
}

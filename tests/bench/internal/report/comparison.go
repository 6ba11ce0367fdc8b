package report

import (
	"fmt"
	"io"

	"github.com/reqlock/reqlock/tests/bench/internal/compare"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
)

// PrintComparison prints the medians of a suite, and its errors.
func (r *Results) PrintComparison(w io.Writer, s compare.Suite) {
	fmt.Fprintln(w, s)
	if s.Contended() {
		r.printContended(w, s)
	} else {
		r.printFree(w, s)
	}
	for _, name := range s.Locks {
		r.printFaults(w, s.Name, name)
	}
}

// printContended prints the figures of callers that wait for each other.
func (r *Results) printContended(w io.Writer, s compare.Suite) {
	t := newTable("lock", "hand-offs/s", "locks/s", "commands/hand-off", "client CPU/lock", "Redis CPU/lock",
		"wait p50", "wait p99", "wait max", "max/mean", "Jain", "allocs/lock")
	for _, name := range s.Locks {
		m := func(of figure) float64 { return r.median(s.Name, name, of) }
		t.row(string(name), number(m(handoffsPerSecond)), number(m(locksPerSecond)), number(m(commandsEach)),
			duration(m(clientCPU)), duration(m(serverCPU)),
			duration(m(waitP50)), duration(m(waitP99)), duration(m(waitMax)), number(m(maxOverMean)),
			number(m(jain)), number(m(allocations)))
	}
	t.print(w)
}

// printFree prints the figures without waiters, and the rate of each lock relative to
// reqlock, which is the first one.
func (r *Results) printFree(w io.Writer, s compare.Suite) {
	t := newTable("lock", "locks/s", "reqlock's locks/s", "commands/lock", "client CPU/lock", "Redis CPU/lock",
		"lock+release p50", "p99", "max", "allocs/lock")
	ours := r.median(s.Name, s.Locks[0], locksPerSecond)
	for _, name := range s.Locks {
		m := func(of figure) float64 { return r.median(s.Name, name, of) }
		t.row(string(name), number(m(locksPerSecond)), times(ours/m(locksPerSecond)), number(m(commandsEach)),
			duration(m(clientCPU)), duration(m(serverCPU)),
			duration(m(waitP50)), duration(m(waitP99)), duration(m(waitMax)), number(m(allocations)))
	}
	t.print(w)
}

// printFaults prints what must not happen: too many holders at a time, lost waiters, errors.
func (r *Results) printFaults(w io.Writer, suite string, name lock.Name) {
	var (
		violations, stuck int64
		faults            []string
	)
	for _, run := range r.runs(suite, name) {
		violations += run.Violations
		stuck += run.Stuck
		faults = append(faults, run.Faults...)
	}
	if violations > 0 {
		fmt.Fprintf(w, "%s: TOO MANY HOLDERS AT ONCE, %d times\n\n", name, violations)
	}
	if stuck > 0 {
		fmt.Fprintf(w, "%s: %d waiters did not get the lock within 5 s after all others were done\n\n", name, stuck)
	}
	if len(faults) > 0 {
		fmt.Fprintf(w, "%s: %d goroutines gave up with an error; the first: %s\n\n", name, len(faults), faults[0])
	}
}

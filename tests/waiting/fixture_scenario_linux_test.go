package waiting

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

const (
	processCount = 4
	// fewTurns is how many turns each goroutine takes in the fast tier.
	fewTurns = 60
	// shortTTL and shortTimeout are for runs in which processes die: a lock of a dead
	// process is free after a second.
	shortTTL     = time.Second
	shortTimeout = 100 * time.Millisecond
)

// The names of the lock and of its fencing counter in Redis.
const (
	lockName  = "reqlock:" + theKey
	fenceName = "{" + lockName + "}:f"
)

// A scenario is four processes of sixteen goroutines on one key.
type scenario struct {
	orders
	// servers is a single server if it is nil.
	servers *redistest.Deployment
	// processes is how many processes there are in the end, if more than four.
	processes int
	// meanwhile runs while the workers run.
	meanwhile func(w *workers)
	// checks return violations.
	checks checks
}

// newOrders returns orders with this many turns for each goroutine, or few in the fast
// tier.
func newOrders(ttl, timeout time.Duration, fencing bool, turns int) orders {
	return orders{
		Size: tableSize{Processes: processCount, Goroutines: 16, Turns: suite.Size(fewTurns, turns)},
		TTL:  ttl, Timeout: timeout, Fencing: fencing,
	}
}

// checks return the violations of a history, by their names.
type checks map[string]func(history.Holds) []string

func basicChecks() checks {
	return checks{
		"exclusion": history.Holds.Exclusion, "limits": history.Holds.Limits, "encounters": history.Holds.Encounters,
		"fences": history.Holds.Fences, "service": func(h history.Holds) []string { return h.Service(now()) },
	}
}

// withOrder adds the check of the order within a process. On a busy machine a goroutine
// may pause between its call and the queue, mostly for less than 50 ms.
func (c checks) withOrder() checks {
	c["order"] = func(h history.Holds) []string { return history.BusyMachine().Disorder(h, 50*time.Millisecond) }
	return c
}

func (c checks) withFairness(byLease bool) checks {
	f := history.BusyMachine()
	f.ByLease = byLease
	c["fairness"] = f.Monopolies
	return c
}

// withWaits adds the check that no wait is too long.
func (c checks) withWaits() checks {
	c["waits"] = func(h history.Holds) (found []string) {
		for _, some := range h.ByLimit() {
			found = append(found, history.BusyMachine().LongWaits(some, processCount)...)
		}
		return found
	}
	return c
}

func (c checks) without(name string) checks {
	delete(c, name)
	return c
}

// runsAlone makes the test run beside others in the fast tier, and reports whether it runs alone, as
// it does in the full tier. Beside others too many processes share the machine for checks that
// depend on time.
func runsAlone(t *testing.T) bool {
	t.Helper()
	if !suite.IsFull() {
		t.Parallel()
	}
	return suite.IsFull()
}

func (w *workers) total() int64 {
	return int64(processCount * w.orders.Size.Goroutines * w.orders.Size.Turns)
}

func (w *workers) until(fraction float64) {
	w.t.Helper()
	w.await("a fraction of the grants is made", func() bool { return w.hasMade(fraction) })
}

func (w *workers) hasMade(fraction float64) bool {
	return w.table.grants() >= int64(fraction*float64(w.total()))
}

func (w *workers) repeat(pause time.Duration, action func()) {
	w.t.Helper()
	w.await("all workers end", periodically(pause, action, w.finished))
}

func (w *workers) repeatUntil(fraction float64, pause time.Duration, action func()) {
	w.t.Helper()
	w.await("a fraction of the grants is made", periodically(pause, action, func() bool { return w.hasMade(fraction) }))
}

func periodically(period time.Duration, action func(), condition func() bool) func() bool {
	next := time.Now().Add(period)
	return func() bool {
		if now := time.Now(); now.After(next) {
			action()
			next = now.Add(period)
		}
		return condition()
	}
}

// run runs a scenario and its checks, and returns its holds.
func (s scenario) run(t *testing.T) (*workers, history.Holds) {
	t.Helper()
	o := s.orders
	o.Size.Processes = max(processCount, s.processes)
	if s.servers == nil {
		s.servers = redistest.OnServer.Start(t)
	}
	w := newWorkers(t, s.servers, o, 3*time.Minute)
	begun := time.Now()
	w.startAll(processCount, "TestWorker")
	if s.meanwhile != nil {
		s.meanwhile(w)
	}
	w.finish()
	took := time.Since(begun)
	h := w.history()
	holds, violations := h.Holds(), map[string][]string{}
	for name, check := range s.checks {
		violations[name] = check(holds)
	}
	history.Report(t, h, violations)
	w.logFigures(holds, took)
	return w, holds
}

func (w *workers) logFigures(h history.Holds, took time.Duration) {
	w.t.Helper()
	_, longest := h.Waits()
	w.t.Logf("%v: %d turns, %d grants, %d hand-offs between processes, %d lost, longest wait %v", took.Round(time.Millisecond),
		len(h), len(h.Granted()[theKey]), h.HandOffs(), h.Lost(), longest.Round(time.Millisecond))
}

// wantFewCommands fails the test if a hand-off between processes took more than five
// commands, by the count of the clients or of the server: mostly it takes three, and a
// grant within a process none. It also fails if processes took turns too often, which
// costs as much.
func (w *workers) wantFewCommands(h history.Holds) {
	w.t.Helper()
	var sent int64
	for i := range w.table.processes {
		sent += w.table.processes[i].commands.Load()
	}
	ran := sum(commandStats(w.t, w.admin), "evalsha", "eval", "script|load")
	perHandOff := float64(max(sent, ran)) / float64(max(1, h.HandOffs()))
	w.t.Logf("clients sent %d commands, the server ran %d scripts: %.2f for each of %d hand-offs between processes, of %d at most",
		sent, ran, perHandOff, h.HandOffs(), h.MaxHandOffs())
	if perHandOff > 5 {
		w.t.Errorf("%.2f commands for each hand-off between processes", perHandOff)
	}
	if h.HandOffs() > h.MaxHandOffs() {
		w.t.Errorf("%d hand-offs between processes, where %d are enough", h.HandOffs(), h.MaxHandOffs())
	}
}

package waiting

import (
	"fmt"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

const (
	crewSize  = 4
	crewTurns = 500
	// shortTTL and shortBound are for runs in which processes die: what they
	// hold is free after a second.
	shortTTL   = time.Second
	shortBound = 100 * time.Millisecond
)

// The names of the lock and of its fence counter.
const (
	lockName  = "reqlock:" + theKey
	fenceName = "{" + lockName + "}:f"
)

// A scenario is four processes of sixteen goroutines on one key, with what
// happens meanwhile.
type scenario struct {
	orders
	// servers are one alone if they are not given.
	servers *redistest.Deployment
	// processes is how many there are in the end.
	processes int
	// meanwhile runs while the workers do.
	meanwhile func(c *crew)
	// checks are the findings that must be none.
	checks map[string]func(h history) []string
}

// full are the orders of a whole crew with so many turns.
func full(ttl, bound time.Duration, fencing bool) orders {
	return orders{
		Shape: shape{Processes: crewSize, Goroutines: 16, Turns: fewer(crewTurns, 60)},
		TTL:   ttl, Bound: bound, Fencing: fencing,
	}
}

// plain are the checks that hold in any run without loss of data.
func plain() map[string]func(history) []string {
	return map[string]func(history) []string{
		"overlap":  history.overlaps,
		"meeting":  history.meetings,
		"fence":    history.falls,
		"unserved": func(h history) []string { return h.unserved(monotonic()) },
	}
}

// inOrder adds the check that those of one process are served in the order in
// which they came. On a busy machine a goroutine may be kept from running
// between its call and the line, and now and then for long.
func inOrder(checks map[string]func(history) []string) map[string]func(history) []string {
	checks["out of order"] = func(h history) []string { return h.disorder(50*time.Millisecond, patient) }
	return checks
}

// fairly adds the check of turns.
func fairly(checks map[string]func(history) []string, leases bool) map[string]func(history) []string {
	f := patient
	f.leases = leases
	checks["more than a turn"] = func(h history) []string { return h.hogs(f) }
	return checks
}

// total is how many grants a crew makes in all.
func (c *crew) total() int64 {
	return int64(crewSize * c.orders.Shape.Goroutines * c.orders.Shape.Turns)
}

// until returns once a part of all grants has been made.
func (c *crew) until(part float64) {
	c.t.Helper()
	c.await("part of the grants are made", func() bool { return c.made(part) })
}

// made reports whether a part of all grants has been made.
func (c *crew) made(part float64) bool {
	return c.table.grants() >= int64(part*float64(c.total()))
}

// while does something again and again until all workers have ended.
func (c *crew) while(pause time.Duration, do func()) {
	c.t.Helper()
	c.await("all workers end", every(pause, do, c.finished))
}

// whileUntil does something again and again until a part of all grants has been
// made.
func (c *crew) whileUntil(part float64, pause time.Duration, do func()) {
	c.t.Helper()
	c.await("part of the grants are made", every(pause, do, func() bool { return c.made(part) }))
}

// every returns the condition, which does something now and then when it is
// asked.
func every(pause time.Duration, do func(), condition func() bool) func() bool {
	next := time.Now().Add(pause)
	return func() bool {
		if now := time.Now(); now.After(next) {
			do()
			next = now.Add(pause)
		}
		return condition()
	}
}

// play runs a scenario and returns its history.
func (s scenario) play(t *testing.T) (*crew, history) {
	t.Helper()
	o := s.orders
	o.Shape.Processes = max(crewSize, s.processes)
	if s.servers == nil {
		s.servers = redistest.OnServer.Start(t)
	}
	c := newCrew(t, s.servers, o, 3*time.Minute)
	begun := time.Now()
	c.muster(crewSize, "TestWorker")
	if s.meanwhile != nil {
		s.meanwhile(c)
	}
	c.finish()
	took := time.Since(begun)
	h := c.history()
	for name, check := range s.checks {
		for i, found := range check(h) {
			if i == 5 {
				t.Errorf("%s: and more", name)
				break
			}
			t.Errorf("%s: %s", name, found)
		}
	}
	c.summarize(h, took)
	return c, h
}

// summarize logs the figures of a run.
func (c *crew) summarize(h history, took time.Duration) {
	c.t.Helper()
	var handovers [5]int64
	var commands int64
	for i := range c.table.processes {
		for how := range handovers {
			handovers[how] += c.table.processes[i].handovers[how].Load()
		}
		commands += c.table.processes[i].commands.Load()
	}
	grants := h.grants()
	fences := "no fences"
	if c.orders.Fencing {
		fences = fmt.Sprintf("%d fences of %d do not rise", len(h.falls()), len(grants))
	}
	c.t.Logf("%v: %d turns, %d grants (free %d, awaited %d, passed %d, handed %d), %d hand-offs between processes, "+
		"%d overlaps, %d meetings, %s, %d lost, longest wait %v, %.4f commands per grant",
		took.Round(time.Millisecond), len(h), len(grants), handovers[1], handovers[2], handovers[3], handovers[4], h.handOffs(),
		len(h.overlaps()), len(h.meetings()), fences, h.lost(), h.longestWait().Round(time.Millisecond),
		float64(commands)/float64(max(1, len(grants))))
}

// wantFewCommands fails the test if it took more than a few commands to let another
// process have the key, by the count of the clients or by that of the server: three
// mostly, and a grant within a process none; or if processes took turns too often, which
// costs as much.
func (c *crew) wantFewCommands(h history) {
	c.t.Helper()
	var sent int64
	for i := range c.table.processes {
		sent += c.table.processes[i].commands.Load()
	}
	ran := sum(commandStats(c.t, c.admin), "evalsha", "eval", "script|load")
	perHandOff := float64(max(sent, ran)) / float64(max(1, h.handOffs()))
	c.t.Logf("clients sent %d commands, the server ran %d scripts: %.2f for each of %d hand-offs between processes, of %d at most",
		sent, ran, perHandOff, h.handOffs(), h.mostHandOffs())
	if perHandOff > 5 {
		c.t.Errorf("%.2f commands for each hand-off between processes", perHandOff)
	}
	if h.handOffs() > h.mostHandOffs() {
		c.t.Errorf("%d hand-offs between processes, where %d are enough", h.handOffs(), h.mostHandOffs())
	}
}

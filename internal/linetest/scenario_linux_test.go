package linetest

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redistest"
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
	checks["out of order"] = func(h history) []string {
		return unlessFew(h.jumped(50*time.Millisecond), len(h.grants())/100)
	}
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

//faults:row 31
func TestFourProcessesTakeTurns(t *testing.T) {
	for name, fencing := range map[string]bool{"with fencing": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			s := scenario{orders: full(10*time.Second, 500*time.Millisecond, fencing), checks: inOrder(fairly(plain(), false))}
			if !fencing {
				s.Shape.Turns = fewer(100, 60)
				delete(s.checks, "fence")
			}
			c, h := s.play(t)
			if h.lost() > 0 {
				t.Errorf("%d leases were lost", h.lost())
			}
			if int64(len(h)) != c.total() {
				t.Errorf("%d of %d turns", len(h), c.total())
			}
			c.wantFewCommands(h)
		})
	}
}

// wantFewCommands fails the test if it took more than a few commands to let another
// process have the key, by the count of the clients or by that of the server: three
// mostly, and a grant within a process none. On a busy machine turns end early, by
// time, so there are fewer grants for the same commands: a third of a turn's grants, or
// half of its time, there are in nearly each.
func (c *crew) wantFewCommands(h history) {
	c.t.Helper()
	var sent int64
	for i := range c.table.processes {
		sent += c.table.processes[i].commands.Load()
	}
	ran := sum(commandStats(c.t, c.admin), "evalsha", "eval", "script|load")
	perHandOff := float64(max(sent, ran)) / float64(max(1, h.handOffs()))
	c.t.Logf("clients sent %d commands, the server ran %d scripts: %.2f for each of %d hand-offs between processes", sent, ran, perHandOff, h.handOffs())
	if perHandOff > 8 {
		c.t.Errorf("%.2f commands for each hand-off between processes", perHandOff)
	}
	grants := h.grants()
	took := time.Duration(grants[len(grants)-1].granted - grants[0].granted)
	if h.handOffs() > len(grants)/(turnGrants/3)+int(took/(turnTime/2)) {
		c.t.Errorf("%d hand-offs between processes in %d grants and %v", h.handOffs(), len(grants), took)
	}
}

//faults:row 31: the dead are passed over
func TestAProcessIsKilled(t *testing.T) {
	_, h := scenario{
		orders: full(shortTTL, shortBound, true), processes: crewSize + 2, checks: inOrder(fairly(plain(), true)),
		meanwhile: func(c *crew) {
			c.until(0.25)
			c.kill(1) // wherever it is
			c.enlist(crewSize, "TestWorker")
			c.until(0.5)
			c.lingering(2)
			c.kill(2) // while it holds
			c.enlist(crewSize+1, "TestWorker")
		},
	}.play(t)
	inside := 0
	for _, one := range h {
		if one.killed && one.served() {
			inside++
		}
	}
	if inside == 0 {
		t.Error("nobody was killed inside")
	}
}

//faults:row 14 limit: SIGSTOP while it holds
func TestAProcessStandsStill(t *testing.T) {
	long := full(shortTTL, shortBound, true)
	long.Shape.Turns = max(long.Shape.Turns, 300) // the others must not be done meanwhile
	scenario{
		orders: long, checks: fairly(plain(), true),
		meanwhile: func(c *crew) {
			c.until(0.25)
			c.standStillInside(1)
			c.until(0.5)
			c.standStill(2) // wherever it is
		},
	}.play(t)
}

// standStillInside halts a process while it holds the key. It is told afterwards.
func (c *crew) standStillInside(process int) {
	c.t.Helper()
	turn := c.lingering(process)
	c.standStill(process)
	c.wantLost(turn)
}

// wantLost returns when a holder has left, who must know that its lease was lost.
func (c *crew) wantLost(turn *turnRow) {
	c.t.Helper()
	c.await("the holder comes back", func() bool { return turn.ended.Load() != 0 })
	if turn.lost.Load() == 0 {
		c.t.Error("the holder was not told that its lease is lost")
	}
}

// standStill halts a process for longer than its lease can live, and until
// others were granted the key.
func (c *crew) standStill(process int) {
	c.t.Helper()
	c.halt(process)
	begun, others := time.Now(), c.table.grants()
	c.await("others go on", func() bool {
		return time.Since(begun) > c.orders.TTL+c.orders.TTL/2 && c.table.grants() > others
	})
	c.resume(process)
}

// Somebody who follows no rules writes a value of his own over the holder's.
//
//faults:row 26
func TestTheKeyIsTakenAway(t *testing.T) {
	s := scenario{
		orders: full(shortTTL, shortBound, true), checks: plain(),
		meanwhile: func(c *crew) {
			c.until(0.25)
			c.takeAway(1)
		},
	}
	s.Shape.Turns = fewer(100, 60)
	s.play(t)
}

// takeAway takes the key from a process while it holds it.
func (c *crew) takeAway(process int) {
	c.t.Helper()
	turn := c.lingering(process)
	c.admin.Set(c.t.Context(), lockName, "foreign", time.Minute)
	c.wantLost(turn)
	c.admin.Del(c.t.Context(), lockName)
}

//faults:row 27: again and again, under load
func TestTheSubscriptionsAreCut(t *testing.T) {
	for name, test := range map[string]struct {
		turns int
		cut   func(c *crew) int64
	}{
		"all at once": {crewTurns, func(c *crew) int64 {
			return c.admin.ClientKillByFilter(c.t.Context(), "TYPE", "pubsub").Val()
		}},
		"one at a time": {200, func(c *crew) int64 {
			listening := c.admin.Do(c.t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").String()
			all := clientID.FindAllStringSubmatch(listening, -1)
			if len(all) == 0 {
				return 0
			}
			return c.admin.ClientKillByFilter(c.t.Context(), "ID", all[rand.IntN(len(all))][1]).Val()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cuts := int64(0)
			s := scenario{
				orders: full(shortTTL, shortBound, true), checks: plain(),
				meanwhile: func(c *crew) {
					c.while(50*time.Millisecond, func() { cuts += test.cut(c) })
				},
			}
			s.Shape.Turns = fewer(test.turns, 60)
			s.play(t)
			t.Logf("%d subscriptions were cut", cuts)
			if cuts < 4 {
				t.Errorf("%d subscriptions were cut", cuts)
			}
		})
	}
}

// clientID finds the ids in a CLIENT LIST.
var clientID = regexp.MustCompile(`\bid=(\d+)`)

func TestTheFenceKeyIsDeleted(t *testing.T) {
	deleted := int64(0)
	s := scenario{
		orders: full(shortTTL, shortBound, true), checks: fairly(plain(), false),
		meanwhile: func(c *crew) {
			c.while(5*time.Millisecond, func() { deleted += c.admin.Del(c.t.Context(), fenceName).Val() })
		},
	}
	s.Shape.Turns = fewer(200, 60)
	s.play(t)
	t.Logf("the fence key was deleted %d times", deleted)
	if deleted == 0 {
		t.Error("the fence key was never there")
	}
}

// Data that is lost may let two holders in, who both believe: exclusion is not
// asked for here. Their fences tell who is the later one.
//
//faults:row 16 loss: under load; fences rise, everybody is served
func TestAllDataIsLost(t *testing.T) {
	s := scenario{
		orders: full(shortTTL, shortBound, true), checks: afterLoss(),
		meanwhile: func(c *crew) { c.loseAll(0.2, 0.4, 0.6, 0.8) },
	}
	s.Shape.Turns = fewer(200, 60)
	s.play(t)
}

// afterLoss are the checks that hold where data is lost.
func afterLoss() map[string]func(history) []string {
	return map[string]func(history) []string{
		"fence":    history.leaseFalls,
		"unserved": func(h history) []string { return h.unserved(monotonic()) },
	}
}

// loseAll deletes all data whenever a part of all grants has been made.
func (c *crew) loseAll(parts ...float64) {
	c.t.Helper()
	for _, part := range parts {
		c.until(part)
		err := redistest.EachMaster(c.t.Context(), c.admin, func(master redis.Cmdable) error {
			return master.FlushAll(c.t.Context()).Err()
		})
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

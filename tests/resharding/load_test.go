package resharding

import (
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// TestSlotsThatMove shares one cluster among its tests, each of which has slots
// of its own.
//
//faults:row 23: under load
func TestSlotsThatMove(t *testing.T) {
	cluster := redistest.StartCluster(t)
	for name, test := range map[string]func(*testing.T, *redistest.Cluster){
		"under load everybody is served, and nobody twice":      underLoad,
		"a holder is renewed, wherever its keys are":            renewed,
		"a release amid a move is sent again until it is taken": released,
		"an attempt is committed amid a move, or soon after it": committed,
		"a waiter who leaves amid a move leaves nothing behind": deserted,
		"a Locker is closed amid a move":                        closed,
	} {
		t.Run(name, func(t *testing.T) { test(t, cluster) })
	}
}

// rounds is how often each slot moves on to the next master, in the end to where
// it was: as fast as can be, and so that it stays in each stage until commands
// have met it, and for longer.
const rounds = 3

// longStage is for how long a slot stays in each stage of a slow move. All of them
// together are shorter than a lease without renewal.
const longStage = leaseTTL / 8

// underLoad moves the slots of a crew, and stays in each stage until it was met.
func underLoad(t *testing.T, cluster *redistest.Cluster) {
	c := newCrew(t, cluster, 3, "{a}", "{b}", "{c}")
	before := cluster.Masters()
	c.start()
	for round := range rounds {
		for i := range c.tags {
			c.move(cluster, i, round > 0, round > 1)
		}
	}
	c.stop()
	c.check()
	if after := cluster.Masters(); !slices.Equal(before, after) {
		t.Errorf("a master was replaced, which may lose data: the machine is too slow for this test")
	}
	checkLeft(t, cluster)
	for _, locks := range c.lockers {
		shut(t, locks)
	}
	t.Logf("%d answers MOVED, %d ASK, %d TRYAGAIN", c.traffic.moved.Load(), c.traffic.asked.Load(), c.traffic.again.Load())
	t.Logf("%d keys, %d requests: %v", len(c.histories), len(c.requests), &c.tally)
}

// move moves the slot of a hot key, in stages or as fast as can be, and returns
// when that key was granted again.
func (c *crew) move(cluster *redistest.Cluster, i int, inStages, slowly bool) {
	c.t.Helper()
	key, _ := c.hot(i)
	begun := c.now()
	m := beginMove(c.t, cluster, key)
	if inStages {
		for _, s := range stages {
			s.reach(c.t, m)
			before := c.traffic.again.Load()
			await(c.t, "commands meet the stage in which "+s.name, func() bool { return c.traffic.again.Load() >= before+5 })
			if slowly {
				<-time.After(longStage)
			}
		}
	}
	m.Finish()
	moved := c.now()
	h := c.history(key)
	await(c.t, key+" is granted after its move", func() bool {
		grants := h.grants()
		return len(grants) > 0 && grants[len(grants)-1].granted > moved
	})
	served := c.now()
	c.t.Logf("%s moved in %v: longest time without a grant %v amid it, %v after it", key,
		(moved - begun).Round(time.Millisecond), h.longestGap(begun, moved).Round(time.Millisecond),
		h.longestGap(moved, served).Round(time.Millisecond))
}

// check fails the test for all that is wrong with what the callers saw.
func (c *crew) check() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	fenced := make(map[string]bool)
	for i := range c.tags {
		key, is := c.hot(i)
		fenced[key] = is
	}
	for key, h := range c.histories {
		found := append(h.overlaps(), h.unserved()...)
		if fenced[key] {
			found = append(found, h.falls()...)
		}
		for _, one := range found {
			c.t.Errorf("%s: %s", key, one)
		}
	}
	for key, r := range c.requests {
		for _, one := range r.faults() {
			c.t.Errorf("%s: %s", key, one)
		}
	}
}

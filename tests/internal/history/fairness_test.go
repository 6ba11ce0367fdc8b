package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/reqlock/reqlock/tests/internal/history"
)

const ms = time.Millisecond

func strict() history.Fairness { return history.Fairness{MinWait: 10 * ms} }

// A turn is this many grants in a row of one process, each to another caller. The grants begin at a
// time and have a pause between their beginnings, half of which is the section.
type turn struct {
	process   int
	grants    int
	from      time.Duration
	pause     time.Duration
	asked     time.Duration // by the first caller; the next ones ask 1 ns later each
	longest   time.Duration // section of the first grant, if it is not half of the pause
	resumed   time.Duration
	episode   string
	exchanged bool // the first two callers asked in the reverse order
}

func (one turn) holds() (h history.Holds) {
	for i := range one.grants {
		from := one.from + time.Duration(i)*one.pause
		hold := &history.Hold{
			Key: "k", Holder: fmt.Sprintf("process %d, grant %d", one.process, i), Process: one.process,
			Client: int(from / time.Microsecond), Episode: one.episode,
			Asked: one.asked + time.Duration(i), Granted: from, Ended: from + one.pause/2, Resumed: one.resumed,
		}
		if i == 0 && one.longest > 0 {
			hold.Ended = from + one.longest
		}
		h = append(h, hold)
	}
	if one.exchanged {
		h[0].Asked, h[1].Asked = h[1].Asked, h[0].Asked
	}
	return h
}

func all(turns ...turn) (h history.Holds) {
	for _, one := range turns {
		h = append(h, one.holds()...)
	}
	return h
}

// brief is the pause of grants that a turn of 50 ms has many of.
const brief = 20 * time.Microsecond

func TestMonopoliesAreFound(t *testing.T) {
	t.Parallel()
	from := func(asked time.Duration) turn {
		return turn{process: 1, grants: 1, from: 400 * ms, pause: ms, asked: asked}
	}
	waiting := from(ms) // until 400 ms
	grants := func(n int) turn { return turn{grants: n, from: 20 * ms, pause: brief, asked: ms} }
	atThe40th := 20*ms + 40*brief
	slow := turn{grants: 30, from: 20 * ms, pause: 2 * ms, asked: ms} // of 60 ms
	section := func(took time.Duration) turn {
		return turn{grants: 2, from: 20 * ms, pause: 60 * ms, asked: ms, longest: took}
	}
	resumed := waiting
	resumed.resumed = 75 * ms
	byLease, startup, late := strict(), strict(), strict()
	byLease.ByLease, startup.Startup, late.LatePercent = true, 30*ms, 50
	leases := []turn{grants(33), {grants: 33, from: 20*ms + 33*brief, pause: brief, asked: ms, episode: "later"}, waiting}
	for name, test := range map[string]struct {
		holds history.Holds
		f     history.Fairness
		want  int
	}{
		"65 grants while another process waits":              {all(grants(65), waiting), strict(), 0},
		"66 grants while another process waits":              {all(grants(66), waiting), strict(), 1},
		"66 grants while no process waits":                   {all(grants(66)), strict(), 0},
		"66 grants while a caller waits that was not served": {append(all(grants(66)), &history.Hold{Key: "k", Process: 1, Asked: ms}), strict(), 1},
		"66 grants, and a waiter that came at the 40th":      {all(grants(66), from(atThe40th)), strict(), 0},
		"1000 grants, and a waiter that came at the 40th":    {all(grants(1000), from(atThe40th)), strict(), 1},
		"60 ms while another process waits":                  {all(slow, waiting), strict(), 1},
		"60 ms, of which one section took 40 ms":             {all(section(40*ms), waiting), strict(), 0},
		"60 ms, of which one section took 5 ms":              {all(section(5*ms), waiting), strict(), 1},
		"60 ms while a process waits that has to connect":    {all(slow, waiting), startup, 0},
		"60 ms while a process waits that was paused":        {all(slow, resumed), strict(), 0},
		"60 ms in one of two turns, on a busy machine":       {all(slow, waiting), late, 0},
		"66 grants of two leases, each of which is a turn":   {all(leases...), byLease, 0},
		"66 grants of two leases, both of which are a turn":  {all(leases...), strict(), 1},
	} {
		if found := test.f.Monopolies(test.holds); len(found) != test.want {
			t.Errorf("%s: found %d, want %d: %q", name, len(found), test.want, found)
		}
	}
}

func TestOvertakingsAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		asked  []time.Duration // by the callers of one process, in the order of their grants
		margin time.Duration
		want   int
	}{
		"in their order":                  {[]time.Duration{10, 20, 30}, 0, 0},
		"the second one first":            {[]time.Duration{20, 10, 30}, 0, 1},
		"the third one first":             {[]time.Duration{30, 10, 20}, 0, 2},
		"the second one first, by little": {[]time.Duration{20, 10, 30}, 10, 0},
	} {
		var h history.Holds
		for i, asked := range test.asked {
			one := held(name, time.Duration(100+10*i), time.Duration(105+10*i), 1)
			one.Asked = asked
			h = append(h, one)
		}
		if found := h.Overtakings(test.margin); len(found) != test.want {
			t.Errorf("%s: found %q, want %d", name, found, test.want)
		}
	}
}

// At a hand-off the first two waiters of a process are exchanged.
func TestAQueueThatLosesItsOrderIsFound(t *testing.T) {
	t.Parallel()
	const turns = 60 // of which a busy machine may cause 3 violations
	for exchanged, want := range map[int]int{0: 0, 3: 0, 4: 4, 40: 40} {
		var h history.Holds
		for n := range turns {
			at := time.Duration(n) * 10 * ms
			h = append(h, turn{process: n % 2, grants: 2, from: at + 5*ms, pause: ms, asked: at + ms, exchanged: n < exchanged}.holds()...)
		}
		if found := history.BusyMachine().Disorder(h, 0); len(found) != want {
			t.Errorf("%d of %d turns exchanged: found %d", exchanged, turns, len(found))
		}
	}
}

func TestLongWaitsAreFound(t *testing.T) {
	t.Parallel()
	f := history.Fairness{Stall: 10 * ms, LatePercent: 5} // 60 ms for each of two turns of four processes
	for name, test := range map[string]struct {
		waits map[time.Duration]int // how often
		want  int
	}{
		"fair":               {map[time.Duration]int{480 * ms: 100}, 0},
		"5 of 100 too long":  {map[time.Duration]int{480 * ms: 95, 481 * ms: 5}, 0},
		"6 of 100 too long":  {map[time.Duration]int{480 * ms: 94, 481 * ms: 6}, 6},
		"one that starves":   {map[time.Duration]int{480 * ms: 99, 4*480*ms + 1: 1}, 1},
		"one not yet served": {map[time.Duration]int{480 * ms: 10, -ms: 1}, 0},
	} {
		var h history.Holds
		for wait, n := range test.waits {
			for range n {
				h = append(h, &history.Hold{Asked: ms, Granted: ms + wait})
			}
		}
		if found := f.LongWaits(h, 4); len(found) != test.want {
			t.Errorf("%s: found %d: %q", name, len(found), found)
		}
	}
}

func TestTurnsThatEndTooSoonAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		grants  int // in each of 60 turns
		pause   time.Duration
		tooSoon bool
	}{
		"no grants":          {0, brief, false},
		"65 grants":          {65, brief, false},
		"43 grants":          {43, brief, false},
		"20 grants":          {20, brief, true},
		"20 grants in 40 ms": {20, 2 * ms, false},
		"8 grants in 16 ms":  {8, 2 * ms, true},
	} {
		var h history.Holds
		for n := range 60 {
			h = append(h, turn{process: n % 2, grants: test.grants, from: ms + time.Duration(n*test.grants)*test.pause, pause: test.pause, asked: 1}.holds()...)
		}
		if got := h.HandOffs() > h.MaxHandOffs(); got != test.tooSoon {
			t.Errorf("%s: %d hand-offs, and %d are allowed", name, h.HandOffs(), h.MaxHandOffs())
		}
	}
}

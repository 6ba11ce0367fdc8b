package waiting

import (
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/tests/internal/history"
)

const ms = time.Millisecond

// strict is the fairness of the histories in this file.
var strict = fairness{minWait: 10 * ms}

// validTurns returns a history without a violation. Two processes take turns of the lock,
// each with this many grants of 1 ms, with 1 ms between them. Each grant is of a goroutine
// of its own. All goroutines asked at the beginning, one after the other.
func validTurns(processTurns, grants int) turns {
	var ts turns
	for i := range processTurns * grants {
		n := i / grants
		ts = append(ts, &turn{
			Hold: history.Hold{
				Process: n % 2, Lease: int64(n), Fence: int64(10_000*n + i%grants + 1),
				Asked: time.Duration(i + 1), Granted: ms * time.Duration(2*i+20), Ended: ms * time.Duration(2*i+21),
			},
			goroutine: i,
		})
	}
	return ts
}

// shortened makes the grants of a history a hundred times shorter, from the time on at
// which all goroutines have waited long enough.
func shortened(ts turns) turns {
	for _, one := range ts {
		one.Granted, one.Ended = 20*ms+(one.Granted-20*ms)/100, 20*ms+(one.Ended-20*ms)/100
	}
	return ts
}

func TestChecksFindEachViolation(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		history func() turns
		want    string // the checks that find it, as often as they must
	}{
		"none": {func() turns { return validTurns(4, 10) }, ""},
		"a holder that encounters another": {func() turns {
			ts := validTurns(4, 10)
			ts[6].met = ts[5]
			return ts
		}, "encounters"},
		"a holder that encounters one informed of its loss": {func() turns {
			ts := validTurns(4, 10)
			ts[6].met, ts[5].Lost = ts[5], true
			return ts
		}, ""},
		"a holder that encounters a killed one": {func() turns {
			ts := validTurns(4, 10)
			ts[6].met, ts[5].Killed = ts[5], true
			return ts
		}, ""},
		"goroutines not served in their order": {func() turns {
			ts := validTurns(4, 10)
			ts[3].Asked, ts[4].Asked = ts[4].Asked, ts[3].Asked
			return ts
		}, "overtakings"},
		"a whole turn":         {func() turns { return shortened(validTurns(4, 65)) }, ""},
		"one more than a turn": {func() turns { return shortened(validTurns(4, 66)) }, "monopolies monopolies monopolies"},
		"more than a turn without a waiter": {func() turns {
			ts := shortened(validTurns(2, 100))
			for _, one := range ts {
				one.Asked = one.Granted - 1
			}
			return ts
		}, ""},
		"a waiter that arrives late": {func() turns {
			ts := shortened(validTurns(2, 100))
			for _, one := range ts[100:] {
				one.Asked = ts[40].Granted
			}
			return ts
		}, ""},
		"a waiter that arrives, and waits for more than a turn": {func() turns {
			ts := shortened(validTurns(2, 1000))
			for _, one := range ts[1000:] {
				one.Asked = ts[40].Granted
			}
			return ts
		}, "monopolies"},
		"a turn that lasts too long": {func() turns { return validTurns(2, 30) }, "monopolies"},
		"a turn of one long section": {func() turns {
			ts := validTurns(2, 2)
			ts[0].Ended = ts[0].Granted + 200*ms
			for i, one := range ts[1:] {
				one.Granted += 200*ms + time.Duration(i)
				one.Ended += 200*ms + time.Duration(i)
			}
			return ts
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ts := test.history()
			want := map[string]int{}
			for _, check := range strings.Fields(test.want) {
				want[check]++
			}
			for check, found := range map[string][]string{
				"encounters": ts.encounters(), "monopolies": ts.monopolies(strict), "overtakings": ts.overtakings(0),
			} {
				if len(found) < want[check] || want[check] == 0 && len(found) > 0 {
					t.Errorf("%s finds %d, want %d: %q", check, len(found), want[check], found)
				}
			}
		})
	}
}

func TestEachLeaseMayBeATurn(t *testing.T) {
	t.Parallel()
	ts := shortened(validTurns(1, 130))
	for i, one := range ts {
		one.Lease = int64(i / 65)
	}
	ts = append(ts, &turn{Hold: history.Hold{Process: 1, Asked: 1, Ended: time.Hour, Killed: true}, goroutine: 999})
	if found := ts.monopolies(strict); len(found) != 1 {
		t.Errorf("%d in a row are %q", len(ts)-1, found)
	}
	byLease := strict
	byLease.byLease = true
	if found := ts.monopolies(byLease); len(found) != 0 {
		t.Errorf("two leases are %q", found)
	}
}

func TestTheFirstWaitOfAProcessMayBeLonger(t *testing.T) {
	t.Parallel()
	ts := validTurns(2, 30) // a turn of 60 ms
	f := strict
	if found := ts.monopolies(f); len(found) != 1 {
		t.Errorf("without startup it finds %q", found)
	}
	for _, one := range ts {
		one.resumed = 40 * ms
	}
	if found := ts.monopolies(f); len(found) != 0 {
		t.Errorf("for stopped processes it finds %q", found)
	}
	for _, one := range ts {
		one.resumed = 0
	}
	f.startup = 30 * ms
	if found := ts.monopolies(f); len(found) != 0 {
		t.Errorf("with a startup of %v it finds %q", f.startup, found)
	}
}

func TestABusyMachineMayCauseFewLateTurns(t *testing.T) {
	t.Parallel()
	ts, f := validTurns(2, 30), strict // one of two turns takes 60 ms
	for percent, want := range map[int]int{49: 1, 50: 0} {
		f.latePercent = percent
		if found := ts.monopolies(f); len(found) != want {
			t.Errorf("if %d of a hundred may be late it finds %q", percent, found)
		}
	}
}

func TestLongWaitsAreFound(t *testing.T) {
	t.Parallel()
	f := fairness{stall: 10 * ms, latePercent: 5} // 60 ms for each of two turns of a process
	for name, test := range map[string]struct {
		waits map[time.Duration]int // how often
		want  int
	}{
		"fair":             {map[time.Duration]int{480 * ms: 100}, 0},
		"few that are not": {map[time.Duration]int{480 * ms: 95, 481 * ms: 5}, 0},
		"more":             {map[time.Duration]int{480 * ms: 94, 481 * ms: 6}, 6},
		"one that waits":   {map[time.Duration]int{480 * ms: 10, -ms: 1}, 0},
	} {
		var ts turns
		for wait, n := range test.waits {
			for range n {
				ts = append(ts, &turn{Hold: history.Hold{Asked: ms, Granted: ms + wait}})
			}
		}
		if found := ts.longWaits(f, 4); len(found) != test.want {
			t.Errorf("%s: it finds %d: %q", name, len(found), found)
		}
	}
}

// At a hand-off the first two waiters of a process are exchanged.
func TestAQueueThatLosesItsOrderIsFound(t *testing.T) {
	t.Parallel()
	const processTurns, margin = 60, ms
	for exchanged, isTolerated := range map[int]bool{0: true, 3: true, 4: false, processTurns * 2 / 3: false} {
		ts := validTurns(processTurns, maxGrants)
		for _, one := range ts {
			one.Asked *= 2 * margin
		}
		for n := range exchanged {
			one, next := ts[maxGrants*n], ts[maxGrants*n+1]
			one.Asked, next.Asked = next.Asked, one.Asked
		}
		if found := ts.overtakings(margin); len(found) != exchanged {
			t.Errorf("%d exchanged, and it finds %d", exchanged, len(found))
		}
		want := exchanged
		if isTolerated {
			want = 0
		}
		if found := ts.disorder(margin, busyMachine); len(found) != want {
			t.Errorf("%d of %d grants exchanged, in %d turns: it finds %d", exchanged, len(ts), processTurns, len(found))
		}
	}
}

func TestTurnsThatEndTooSoonAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		turns   turns
		tooSoon bool
	}{
		"no grants":                    {turns{}, false},
		"one turn that was not served": {turns{{Hold: history.Hold{Process: 1, Asked: 1}}}, false},
		"whole turns":                  {shortened(validTurns(60, 65)), false},
		"turns of two thirds":          {shortened(validTurns(60, 43)), false},
		"turns of less than a third":   {shortened(validTurns(60, 20)), true},
		"slow grants in turns of time": {validTurns(60, 20), false}, // of 40 ms
		"slow grants in shorter turns": {validTurns(60, 8), true},   // of 16 ms
	} {
		if got := test.turns.handOffs() > test.turns.maxHandOffs(); got != test.tooSoon {
			t.Errorf("%s: %d hand-offs, and %d are allowed", name, test.turns.handOffs(), test.turns.maxHandOffs())
		}
	}
}

package waiting

import (
	"testing"
	"time"
)

func TestLeasesAreTurnsOfTheirOwnWhereOneDied(t *testing.T) {
	h := short(sound(1, 130))
	for i, one := range h {
		one.episode = int64(i / 65)
	}
	h = append(h, &hold{process: 1, goroutine: 999, asked: 1, ended: time.Hour.Nanoseconds(), killed: true})
	if found := h.hogs(fair); len(found) != 1 {
		t.Errorf("%d in a row are %q", len(h)-1, found)
	}
	leases := fair
	leases.leases = true
	if found := h.hogs(leases); len(found) != 0 {
		t.Errorf("two leases are %q", found)
	}
}

func TestTheFirstWaitOfAProcessMayBeLonger(t *testing.T) {
	h := sound(2, 30) // a turn of 60 ms
	late := fair
	if found := h.hogs(late); len(found) != 1 {
		t.Errorf("without a start it finds %q", found)
	}
	for _, one := range h {
		one.stood = 40 * ms
	}
	if found := h.hogs(late); len(found) != 0 {
		t.Errorf("where all stood still it finds %q", found)
	}
	for _, one := range h {
		one.stood = 0
	}
	late.start = 30 * time.Millisecond
	if found := h.hogs(late); len(found) != 0 {
		t.Errorf("with a start of %v it finds %q", late.start, found)
	}
}

func TestFewLateTurnsAreTheFaultOfTheMachine(t *testing.T) {
	h, busy := sound(2, 30), fair // of two turns one takes 60 ms
	for late, want := range map[int]int{49: 1, 50: 0} {
		busy.late = late
		if found := h.hogs(busy); len(found) != want {
			t.Errorf("where %d of a hundred may be late it finds %q", late, found)
		}
	}
}

// At a hand-off the first two in the line of a process change places.
func TestALineThatLosesItsOrderIsFound(t *testing.T) {
	const turns, margin = 60, time.Millisecond
	for lost, excused := range map[int]bool{0: true, 3: true, 4: false, turns * 2 / 3: false} {
		h := sound(turns, turnGrants)
		for _, one := range h {
			one.asked *= 2 * int64(margin)
		}
		for turn := range lost {
			one, next := h[turnGrants*turn], h[turnGrants*turn+1]
			one.asked, next.asked = next.asked, one.asked
		}
		if found := h.jumped(margin); len(found) != lost {
			t.Errorf("%d jumped, and it finds %d", lost, len(found))
		}
		want := lost
		if excused {
			want = 0
		}
		if found := h.disorder(margin, patient); len(found) != want {
			t.Errorf("where %d of %d grants jumped, in %d turns, it finds %d", lost, len(h), turns, len(found))
		}
	}
}

func TestTurnsThatEndTooSoonAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		h       history
		tooSoon bool
	}{
		"no grants":                    {history{}, false},
		"only one who was not served":  {history{{process: 1, asked: 1}}, false},
		"whole turns":                  {short(sound(60, 65)), false},
		"turns of two thirds":          {short(sound(60, 43)), false},
		"turns of less than a third":   {short(sound(60, 20)), true},
		"slow grants in turns of time": {sound(60, 20), false}, // of 40 ms
		"slow grants in shorter turns": {sound(60, 8), true},   // of 16 ms
	} {
		if got := test.h.handOffs() > test.h.mostHandOffs(); got != test.tooSoon {
			t.Errorf("%s: %d hand-offs, and %d are allowed", name, test.h.handOffs(), test.h.mostHandOffs())
		}
	}
}

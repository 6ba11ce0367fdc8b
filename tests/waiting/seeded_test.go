package waiting

import (
	"strings"
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

// fair is the fairness of the histories here.
var fair = fairness{notice: 10 * time.Millisecond}

// findings runs each check over a history.
func findings(h history) map[string][]string {
	all := map[string][]string{}
	for name, found := range map[string][]string{
		"overlaps":   h.overlaps(),
		"meetings":   h.meetings(),
		"unserved":   h.unserved(time.Hour.Nanoseconds()),
		"falls":      h.falls(),
		"leaseFalls": h.leaseFalls(),
		"hogs":       h.hogs(fair),
		"jumped":     h.jumped(0),
	} {
		if len(found) > 0 {
			all[name] = found
		}
	}
	return all
}

// sound returns a history without a fault: two processes take turns of so many
// holds of 1 ms, with 1 ms between them, each hold by a goroutine of its own,
// and all have asked at the beginning, one after the other.
func sound(turns, length int) history {
	var h history
	for i := range turns * length {
		turn := i / length
		h = append(h, &hold{
			process: turn % 2, goroutine: i, asked: int64(i + 1), granted: ms * int64(2*i+20), ended: ms * int64(2*i+21),
			fence: int64(10_000*turn + i%length), episode: int64(turn),
		})
	}
	return h
}

func TestTheChecksFindWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		history func() history
		finds   string // the checks that find it
	}{
		"nothing": {func() history { return sound(4, 10) }, ""},
		"a hold that begins inside another": {func() history {
			h := sound(4, 10)
			h[5].ended = h[6].granted + 1
			return h
		}, "overlaps"},
		"a hold that begins inside another but one": {func() history {
			h := sound(4, 10)
			h[5].ended = h[7].granted + 1
			return h
		}, "overlaps overlaps"},
		"a hold that ends as the next begins": {func() history {
			h := sound(4, 10)
			h[5].ended = h[6].granted
			return h
		}, ""},
		"a hold that was over before it began": {func() history {
			h := sound(4, 10)
			late := *h[12]
			late.granted, late.fence, late.goroutine = h[30].granted+1, 1, 99
			return append(h, &late)
		}, ""},
		"a holder that is killed inside another": {func() history {
			h := sound(4, 10)
			h[5].ended, h[5].killed = h[6].granted+1, true
			return h
		}, "overlaps"},
		"a holder that meets another": {func() history {
			h := sound(4, 10)
			h[6].met = h[5]
			return h
		}, "meetings"},
		"a holder that meets one who was told of its loss": {func() history {
			h := sound(4, 10)
			h[6].met, h[5].lost = h[5], true
			return h
		}, ""},
		"a holder that meets one who was killed": {func() history {
			h := sound(4, 10)
			h[6].met, h[5].killed = h[5], true
			return h
		}, ""},
		"a fence that falls": {func() history {
			h := sound(4, 10)
			h[15].fence = h[14].fence - 1
			return h
		}, "falls leaseFalls"},
		"a fence given twice": {func() history {
			h := sound(4, 10)
			h[15].fence = h[14].fence
			return h
		}, "falls leaseFalls"},
		"fences that begin anew with a lease": {func() history {
			h := sound(2, 10)
			for i := range 10 {
				h[10+i].fence = int64(i)
			}
			return h
		}, strings.Repeat("falls ", 10) + "leaseFalls"},
		"a lease that is passed on after the next began": {func() history {
			h := sound(2, 10)
			for _, one := range h[12:15] {
				one.process, one.episode, one.fence = h[9].process, h[9].episode, h[9].fence+int64(one.goroutine)
			}
			return h
		}, "falls falls falls"},
		"somebody who is never served": {func() history {
			h := sound(4, 10)
			return append(h, &hold{process: 0, goroutine: 99, asked: 1})
		}, "unserved"},
		"somebody who is killed while it waits": {func() history {
			h := sound(4, 10)
			return append(h, &hold{process: 0, goroutine: 99, asked: 1, ended: 30 * ms, killed: true})
		}, ""},
		"goroutines that are not served in their order": {func() history {
			h := sound(4, 10)
			h[3].asked, h[4].asked = h[4].asked, h[3].asked
			return h
		}, "jumped"},
		"a whole turn": {func() history { return short(sound(4, 65)) }, ""},
		"one more than a turn": {func() history {
			return short(sound(4, 66))
		}, "hogs hogs hogs"},
		"more than a turn while nobody waits": {func() history {
			h := short(sound(2, 100))
			for _, one := range h {
				one.asked = one.granted - 1
			}
			return h
		}, ""},
		"one that turns up late": {func() history {
			h := short(sound(2, 100))
			for _, one := range h[100:] {
				one.asked = h[40].granted
			}
			return h
		}, ""},
		"one that turns up, and waits for more than a turn": {func() history {
			h := short(sound(2, 1000))
			for _, one := range h[1000:] {
				one.asked = h[40].granted
			}
			return h
		}, "hogs"},
		"a turn that lasts too long": {func() history {
			h := sound(2, 30)
			return h
		}, "hogs"},
		"a turn of one long section": {func() history {
			h := sound(2, 2)
			h[0].ended = h[0].granted + 200*ms
			for i, one := range h[1:] {
				one.granted += 200*ms + int64(i)
				one.ended += 200*ms + int64(i)
			}
			return h
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := findings(test.history())
			want := map[string]int{}
			for _, check := range strings.Fields(test.finds) {
				want[check]++
			}
			for check, findings := range found {
				if len(findings) < max(1, want[check]) || want[check] == 0 {
					t.Errorf("%s finds %d: %q", check, len(findings), findings)
				}
			}
			for check, n := range want {
				if len(found[check]) < n {
					t.Errorf("%s finds %d, not %d", check, len(found[check]), n)
				}
			}
		})
	}
}

// short makes the holds of a history a hundred times shorter, from the time on
// at which all wait long enough.
func short(h history) history {
	for _, one := range h {
		one.granted, one.ended = 20*ms+(one.granted-20*ms)/100, 20*ms+(one.ended-20*ms)/100
	}
	return h
}

func TestWhatAHistoryTells(t *testing.T) {
	h := sound(4, 10)
	h[3].lost = true
	h = append(h, &hold{process: 2, asked: 1})
	if h.handOffs() != 3 || h.lost() != 1 || h.longestWait() != time.Duration(h[39].granted-h[39].asked) {
		t.Errorf("%d hand-offs, %d lost, a wait of %v", h.handOffs(), h.lost(), h.longestWait())
	}
	if first := h.grants()[0]; first != h[0] || !strings.Contains(first.String(), "process 0, goroutine 0") {
		t.Errorf("the first is %v", first)
	}
}

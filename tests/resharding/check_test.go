package resharding

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// sound is a history of three holds, one after the other, in which all is well.
func sound() *history {
	h := &history{}
	for i := range 3 {
		at := time.Duration(10*i+1) * time.Millisecond
		h.add(&hold{caller: "one", asked: at, granted: at + time.Millisecond, ended: at + 9*time.Millisecond, fence: int64(10 + i)})
	}
	return h
}

func TestTheChecksFindWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(h *history)
		finds string
	}{
		"nothing": {func(*history) {}, ""},
		"a hold within another": {func(h *history) {
			h.holds[0].ended = h.holds[1].granted + 1
		}, "overlaps"},
		"a hold within one that ended long after the next": {func(h *history) {
			h.holds[0].ended = h.holds[2].granted + 1
		}, "overlaps"},
		"a hold that was over before it began": {func(h *history) {
			h.add(&hold{granted: h.holds[1].granted, ended: h.holds[1].granted, fence: 1})
		}, ""},
		"a fence that falls":    {func(h *history) { h.holds[2].fence = 10 }, "falls"},
		"a fence given twice":   {func(h *history) { h.holds[2].fence = 11 }, "falls"},
		"one who is not served": {func(h *history) { h.add(&hold{caller: "left", asked: 1}) }, "unserved"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := sound()
			test.spoil(h)
			var finds []string
			for check, found := range map[string][]string{
				"overlaps": h.overlaps(), "falls": h.falls(), "unserved": h.unserved(),
			} {
				if len(found) > 0 {
					finds = append(finds, check)
				}
			}
			slices.Sort(finds)
			if got := strings.Join(finds, " "); got != test.finds {
				t.Errorf("finds %q, want %q", got, test.finds)
			}
		})
	}
}

func TestTheLongestGapIsThatWithinTheSpan(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, test := range []struct{ from, to, want time.Duration }{
		{0, 30 * ms, 10 * ms},            // grants at 2, 12 and 22
		{11 * ms, 13 * ms, ms},           // one in the midst
		{3 * ms, 11 * ms, 8 * ms},        // none
		{20 * ms, 100 * ms, 78 * ms},     // none after the first
		{2 * ms, 23 * ms, 10 * ms},       // the first one is not within
		{30 * ms, 50 * ms, 20 * ms},      // after all
		{0, 12*ms + ms/2, 10 * ms},       // ends after the second
		{12*ms - ms/2, 22 * ms, 10 * ms}, // ends with the third
	} {
		if got := sound().longestGap(test.from, test.to); got != test.want {
			t.Errorf("from %v to %v: got %v, want %v", test.from, test.to, got, test.want)
		}
	}
}

func TestARequestHasFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		request *request
		finds   string
	}{
		"one run, and replays of it": {&request{effects: 1, committed: "a", replays: []string{"a", "a"}}, ""},
		"no run":                     {&request{replays: []string{"a"}}, "took effect 0 times"},
		"two runs":                   {&request{effects: 2, committed: "a"}, "took effect 2 times"},
		"another answer":             {&request{effects: 1, committed: "a", replays: []string{"a", "b"}}, "replay"},
		"a false alarm":              {&request{effects: 1, committed: "a", interrupted: 1}, "interrupted"},
		"an alarm for good reason":   {&request{effects: 1, doubtful: true, interrupted: 1}, ""},
		"one answer after a doubt":   {&request{effects: 1, doubtful: true, committed: "a", replays: []string{"a"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := strings.Join(test.request.faults(), "; ")
			if (test.finds == "") != (found == "") || !strings.Contains(found, test.finds) {
				t.Errorf("finds %q, want %q", found, test.finds)
			}
		})
	}
}

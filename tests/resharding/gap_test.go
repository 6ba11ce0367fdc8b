package resharding

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/tests/internal/history"
)

// longestGap returns the longest time in a span in which the key of the holds was not
// granted.
func longestGap(holds history.Holds, from, to time.Duration) (longest time.Duration) {
	last := from
	for _, granted := range holds.Granted() {
		for _, one := range granted {
			if one.Granted > from && one.Granted <= to {
				longest, last = max(longest, one.Granted-last), one.Granted
			}
		}
	}
	return max(longest, to-last)
}

func TestLongestGapIsInTheSpan(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	holds := history.Holds{{Granted: 2 * ms, Ended: 3 * ms}, {Granted: 12 * ms, Ended: 13 * ms}, {Granted: 22 * ms, Ended: 23 * ms}}
	for _, test := range []struct{ from, to, want time.Duration }{
		{0, 30 * ms, 10 * ms},
		{11 * ms, 13 * ms, ms},           // one grant
		{3 * ms, 11 * ms, 8 * ms},        // no grant
		{20 * ms, 100 * ms, 78 * ms},     // no grant after the first
		{2 * ms, 23 * ms, 10 * ms},       // the first grant is not in the span
		{30 * ms, 50 * ms, 20 * ms},      // after all grants
		{0, 12*ms + ms/2, 10 * ms},       // ends after the second grant
		{12*ms - ms/2, 22 * ms, 10 * ms}, // ends with the third grant
	} {
		if got := longestGap(holds, test.from, test.to); got != test.want {
			t.Errorf("from %v to %v: got %v, want %v", test.from, test.to, got, test.want)
		}
	}
}

package console

import (
	"slices"
	"testing"
	"time"
)

func TestChartsCoverTheLastMinutes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	h := history{}
	if h.charts() != nil || h.covers() != 0 {
		t.Error("there are charts without a sample")
	}
	for _, s := range []struct{ after, held int }{{0, 4}, {15, 0}, {60, 2}, {90, 1}} { // s
		h.add(sample{at.Add(time.Duration(s.after) * time.Second), [...]int{s.held, 7, 0}})
	}
	charts := h.charts()
	// Two minutes are 240 units wide. After 15 s nobody looked for 45 s.
	if c := charts[0]; h.covers() != 2*time.Minute || c.Min != 0 || c.Max != 4 || !slices.Equal(c.Lines, []string{"60.0,2.0 90.0,46.0 ", "180.0,24.0 240.0,35.0 "}) {
		t.Errorf("%v: %+v", h.covers(), c)
	}
	if c := charts[2]; c.Min != 0 || c.Max != 0 || c.Lines[1] != "180.0,46.0 240.0,46.0 " {
		t.Errorf("%+v", c)
	}
	for n := range 2 * maxSamples {
		h.add(sample{at: at.Add(time.Duration(n) * time.Second)})
	}
	if len(h.samples) != maxSamples || h.covers() > span {
		t.Errorf("%d samples, %v", len(h.samples), h.covers())
	}
	h.add(sample{at: at.Add(time.Hour)})
	if len(h.samples) != 1 {
		t.Errorf("%d samples are left after an hour", len(h.samples))
	}
}

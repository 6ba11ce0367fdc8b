package console

import (
	"fmt"
	"strings"
	"time"
)

const (
	// span is how far back the charts go.
	span = 10 * time.Minute
	// maxSamples is how many samples these are, at most.
	maxSamples = int(span / leastPause)
	// gap is the time between two samples from which on a chart has a gap: nobody has looked meanwhile.
	gap = 30 * time.Second
)

// A sample is what the overview says in numbers, at a time.
type sample struct {
	at     time.Time
	values [3]int // see the titles of the charts
}

// chartTitles are the titles of the charts.
func chartTitles() [3]string { return [...]string{"Locks held", "Waiting", "Unknown outcomes"} }

// A history has the last samples. It is not safe for concurrent use.
type history struct{ samples []sample }

// add adds a sample, and drops those that are too old or too many.
func (h *history) add(s sample) {
	h.samples = append(h.samples, s)
	first := max(0, len(h.samples)-maxSamples)
	for h.samples[first].at.Before(s.at.Add(-span)) {
		first++
	}
	h.samples = append([]sample(nil), h.samples[first:]...)
}

// The size of a chart in the units of its SVG.
const (
	chartWidth  = 240
	chartHeight = 48
)

// A chart is a number over time, as the points of an SVG.
type chart struct {
	Title    string
	Min, Max int
	Lines    []string // each without a gap
}

// covers returns what the charts cover, in whole minutes: less than the span at the beginning.
func (h *history) covers() time.Duration {
	if len(h.samples) == 0 {
		return 0
	}
	so := h.samples[len(h.samples)-1].at.Sub(h.samples[0].at)
	return min(span, so.Truncate(time.Minute)+time.Minute)
}

// charts returns the charts. The last sample is at the right.
func (h *history) charts() []chart {
	if len(h.samples) == 0 {
		return nil
	}
	var charts []chart
	for n, title := range chartTitles() {
		charts = append(charts, h.chart(n, title))
	}
	return charts
}

func (h *history) chart(n int, title string) chart {
	c := chart{Title: title, Min: h.samples[0].values[n]}
	for _, s := range h.samples {
		c.Min, c.Max = min(c.Min, s.values[n]), max(c.Max, s.values[n])
	}
	var line strings.Builder
	last := h.samples[len(h.samples)-1].at
	for i, s := range h.samples {
		if i > 0 && s.at.Sub(h.samples[i-1].at) > gap {
			c.Lines = append(c.Lines, line.String())
			line.Reset()
		}
		x := chartWidth * (1 - float64(last.Sub(s.at))/float64(h.covers()))
		y := 2 + (chartHeight-4)*(1-float64(s.values[n])/float64(max(1, c.Max))) // with room for the width of the line
		fmt.Fprintf(&line, "%.1f,%.1f ", x, y)
	}
	c.Lines = append(c.Lines, line.String())
	return c
}

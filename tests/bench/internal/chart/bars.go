package chart

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// A Bar is one value.
type Bar struct {
	Label     string
	Value     float64
	Text      string // the value as text
	Highlight bool
}

// A Chart is a horizontal bar chart. All bars share one linear scale that begins at zero.
type Chart struct {
	Title string
	Note  string // one line below the title: what was measured, and which direction is better
	Bars  []Bar
}

// The dimensions of a chart, in pixels.
const (
	width     = 760
	labelEnd  = 190 // the end of the labels
	barStart  = 200
	barEnd    = 640 // the end of the longest bar; its text follows
	firstBar  = 70
	barHeight = 20
	barStep   = 30
	leastBar  = 1.5 // a value above zero is visible
)

// style gives text the color of the page, and bars colors that contrast with both white and
// black.
const style = `
  text { font: 13px -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .title { font-size: 16px; font-weight: 600 }
  .note { fill: #59636e }
  .bar { fill: #8c959f }
  .ours { fill: #1f883d }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .note { fill: #9198a1 }
    .bar { fill: #6e7681 }
    .ours { fill: #3fb950 }
  }
`

// WriteTo writes the chart as an SVG document.
func (c Chart) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	height := firstBar + len(c.Bars)*barStep
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		width, height, width, height, escaped(c.Title))
	fmt.Fprintf(&b, "<style>%s</style>\n", style)
	fmt.Fprintf(&b, `<text class="title" x="12" y="26">%s</text>`+"\n", escaped(c.Title))
	fmt.Fprintf(&b, `<text class="note" x="12" y="48">%s</text>`+"\n", escaped(c.Note))
	longest := c.longest()
	for i, bar := range c.Bars {
		class := "bar"
		if bar.Highlight {
			class = "ours"
		}
		var (
			top      = firstBar + i*barStep
			baseline = top + barHeight - 5
			length   = lengthOf(bar.Value, longest)
		)
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", labelEnd, baseline, escaped(bar.Label))
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`+"\n", class, barStart, top, length, barHeight)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", barStart+length+6, baseline, escaped(bar.Text))
	}
	b.WriteString("</svg>\n")
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// longest returns the largest value.
func (c Chart) longest() (longest float64) {
	for _, bar := range c.Bars {
		if known(bar.Value) {
			longest = max(longest, bar.Value)
		}
	}
	return longest
}

// lengthOf returns the length of the bar of a value.
func lengthOf(value, longest float64) float64 {
	if !known(value) || value <= 0 {
		return 0
	}
	return max(leastBar, value/longest*(barEnd-barStart))
}

// known reports whether a value can be drawn.
func known(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }

// escaped returns text escaped for XML.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}

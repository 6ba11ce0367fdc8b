package report

import (
	"fmt"
	"html"
	"strings"
)

// A Bar is one bar of a chart.
type Bar struct {
	Label  string
	Value  float64
	Text   string // the value as text
	IsOurs bool   // it has another color
}

// The positions in a chart, in pixels.
const (
	width     = 760
	labelEnd  = 190
	barStart  = 200
	barEnd    = 640 // of the longest bar; its text follows
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

// Chart returns a horizontal bar chart as an SVG document. All bars share one linear scale that
// begins at zero.
func Chart(title, note string, bars []Bar) string {
	longest := 0.0
	for _, bar := range bars {
		longest = max(longest, bar.Value)
	}
	var b strings.Builder
	height := firstBar + len(bars)*barStep
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString(title))
	fmt.Fprintf(&b, "<style>%s</style>\n", style)
	fmt.Fprintf(&b, `<text class="title" x="12" y="26">%s</text>`+"\n", html.EscapeString(title))
	fmt.Fprintf(&b, `<text class="note" x="12" y="48">%s</text>`+"\n", html.EscapeString(note))
	for i, bar := range bars {
		class := "bar"
		if bar.IsOurs {
			class = "ours"
		}
		top := firstBar + i*barStep
		baseline := top + barHeight - 5
		length := max(leastBar, bar.Value/longest*(barEnd-barStart))
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", labelEnd, baseline, html.EscapeString(bar.Label))
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`+"\n", class, barStart, top, length, barHeight)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", barStart+length+6, baseline, html.EscapeString(bar.Text))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

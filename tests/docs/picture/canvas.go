package picture

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// style has the colors of light and dark pages. They are those of the charts in
// tests/bench/pictures.
const style = `
  text { font: 13px -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .title { font-size: 16px; font-weight: 600 }
  .strong { font-weight: 600 }
  .note { font-size: 12px; fill: #59636e }
  .code { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
  .goodtext { fill: #1a7f37 }
  .badtext { fill: #cf222e }
  .latetext { fill: #9a6700 }
  rect { fill: #f6f8fa; stroke: #8c959f; stroke-width: 1.2 }
  rect.frame { fill: none; stroke: #d1d9e0 }
  rect.good { fill: #dafbe1; stroke: #1f883d }
  rect.bad { fill: #ffebe9; stroke: #cf222e }
  rect.late { fill: #fff8c5; stroke: #9a6700 }
  rect.wait { fill: none; stroke-dasharray: 4 3 }
  line, polyline { stroke: #59636e; stroke-width: 1.4; fill: none }
  polygon { fill: #59636e }
  line.good, polyline.good { stroke: #1f883d } polygon.good, circle.good { fill: #1f883d }
  line.bad, polyline.bad { stroke: #cf222e } polygon.bad, circle.bad { fill: #cf222e }
  line.late { stroke: #9a6700 } polygon.late { fill: #9a6700 }
  line.axis { stroke: #d1d9e0 }
  .dashed { stroke-dasharray: 4 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .note { fill: #9198a1 }
    .goodtext { fill: #3fb950 }
    .badtext { fill: #f85149 }
    .latetext { fill: #d29922 }
    rect { fill: #151b23; stroke: #6e7681 }
    rect.frame { fill: none; stroke: #3d444d }
    rect.good { fill: #12261e; stroke: #3fb950 }
    rect.bad { fill: #25171c; stroke: #f85149 }
    rect.late { fill: #272115; stroke: #d29922 }
    rect.wait { fill: none }
    line, polyline { stroke: #9198a1 }
    polygon { fill: #9198a1 }
    line.good, polyline.good { stroke: #3fb950 } polygon.good, circle.good { fill: #3fb950 }
    line.bad, polyline.bad { stroke: #f85149 } polygon.bad, circle.bad { fill: #f85149 }
    line.late { stroke: #d29922 } polygon.late { fill: #d29922 }
    line.axis { stroke: #3d444d }
  }
`

// A canvas collects the elements of a picture. Lengths are in pixels.
type canvas struct {
	elements strings.Builder
}

// document returns the picture as an SVG document. The description is for readers who do not
// see it.
func (c *canvas) document(width, height int, description string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		width, height, width, height, escaped(description))
	fmt.Fprintf(&b, "<style>%s</style>\n%s</svg>\n", style, c.elements.String())
	return b.String()
}

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.elements, format+"\n", args...) }

// box draws a rectangle.
func (c *canvas) box(class string, x, y, width, height float64) {
	c.add(`<rect class="%s" x="%g" y="%g" width="%g" height="%g" rx="5"/>`, class, x, y, width, height)
}

// The anchors of a text: where its x is.
const (
	start  = "start"
	middle = "middle"
	end    = "end"
)

// text draws a line of text. Its baseline is at y.
func (c *canvas) text(class, anchor string, x, y float64, text string) {
	c.add(`<text class="%s" text-anchor="%s" x="%g" y="%g">%s</text>`, class, anchor, x, y, escaped(text))
}

// lines draws lines of text below each other.
func (c *canvas) lines(class, anchor string, x, y float64, lines ...string) {
	for i, line := range lines {
		c.text(class, anchor, x, y+float64(i)*18, line)
	}
}

// line draws a line.
func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.add(`<line class="%s" x1="%g" y1="%g" x2="%g" y2="%g"/>`, class, x1, y1, x2, y2)
}

// arrow draws a line with a head at its second end.
func (c *canvas) arrow(class string, x1, y1, x2, y2 float64) {
	const long, wide = 9, 4
	length := math.Hypot(x2-x1, y2-y1)
	dx, dy := (x2-x1)/length, (y2-y1)/length
	baseX, baseY := x2-dx*long, y2-dy*long
	c.line(class, x1, y1, baseX, baseY)
	c.add(`<polygon class="%s" points="%.1f,%.1f %.1f,%.1f %.1f,%.1f"/>`, class,
		x2, y2, baseX-dy*wide, baseY+dx*wide, baseX+dy*wide, baseY-dx*wide)
}

// dot draws a filled circle.
func (c *canvas) dot(class string, x, y float64) {
	c.add(`<circle class="%s" cx="%g" cy="%g" r="5"/>`, class, x, y)
}

// cross draws a cross.
func (c *canvas) cross(class string, x, y, size float64) {
	c.line(class, x-size, y-size, x+size, y+size)
	c.line(class, x-size, y+size, x+size, y-size)
}

// escaped returns text escaped for XML.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}

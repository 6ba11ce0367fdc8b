package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// A table prints results, each as soon as it is known.
type table struct {
	out    io.Writer
	widths [5]int

	rows, wrong int
	begun       time.Time
}

// newTable writes the head of a table with columns wide enough for the scenarios.
func newTable(out io.Writer, scenarios []scenario) *table {
	head := [5]string{" ", "sent", "expected", "happened", "time"}
	t := &table{out: out, begun: time.Now()}
	for i, title := range head {
		t.widths[i] = width(title)
	}
	for _, p := range scenarios {
		t.widths[1] = max(t.widths[1], width(p.Sent))
		t.widths[2] = max(t.widths[2], width(p.Expected))
	}
	t.widths[3] = t.widths[2] // usually the expected text
	t.widths[4] = width("9999 ms")
	t.line(head)
	return t
}

// block writes the heading of the rows that follow.
func (t *table) block(heading string) {
	const before = "── "
	rest := max(0, t.total()-width(before)-width(heading)-1)
	fmt.Fprintln(t.out, before+heading+" "+strings.Repeat("─", rest))
}

// add writes the row of a result.
func (t *table) add(r result) {
	mark, happened := "✓", r.Happened
	if !r.right() {
		mark = "✗"
		t.wrong++
	}
	t.rows++
	if r.Err != nil {
		happened = strings.TrimPrefix(happened+"; "+r.Err.Error(), "; ")
	}
	t.line([5]string{mark, r.Sent, r.Expected, happened, milliseconds(r.Took)})
}

// end writes the closing line, and reports whether all results were as expected.
func (t *table) end() (right bool) {
	t.rule()
	if t.wrong > 0 {
		fmt.Fprintf(t.out, "%d of %d went wrong.\n", t.wrong, t.rows)
		return false
	}
	fmt.Fprintf(t.out, "All %d went as expected, in %.1f s.\n", t.rows, time.Since(t.begun).Seconds())
	return true
}

// line writes one row. The last column is aligned to the right.
func (t *table) line(cells [5]string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		gap := strings.Repeat(" ", max(0, t.widths[i]-width(cell)))
		if i == len(cells)-1 {
			row[i] = gap + cell
		} else {
			row[i] = cell + gap
		}
	}
	fmt.Fprintln(t.out, strings.Join(row, "  "))
}

func (t *table) rule() { fmt.Fprintln(t.out, strings.Repeat("─", t.total())) }

// total is how many columns the table takes.
func (t *table) total() int {
	total := 2 * (len(t.widths) - 1)
	for _, w := range t.widths {
		total += w
	}
	return total
}

// width is how many columns a text takes on a screen.
func width(text string) int { return utf8.RuneCountInString(text) }

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

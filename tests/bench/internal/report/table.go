package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A Table prints columns. The first Left columns are left-aligned, the others are right-aligned.
type Table struct {
	Left int
	rows [][]string
}

// Row adds a row. The first row has the heads of the columns.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Print prints the table, and an empty line after it.
func (t *Table) Print(w io.Writer) {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for i, row := range t.rows {
		fmt.Fprintln(w, t.line(row, widths))
		if i == 0 {
			rules := make([]string, len(widths))
			for j, width := range widths {
				rules[j] = strings.Repeat("-", width)
			}
			fmt.Fprintln(w, t.line(rules, widths))
		}
	}
	fmt.Fprintln(w)
}

// line returns one line, without spaces at its end.
func (t *Table) line(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		width := widths[i]
		if i < t.Left {
			width = -width
		}
		fmt.Fprintf(&b, "%*s  ", width, cell)
	}
	return strings.TrimRight(b.String(), " ")
}
